/**
 * `node apiserver/verify-audit.ts`: checks the audit log of every organization and of accounts, and prints the head of each
 * chain. Ends with 1 when an event is not as it was written, and names it. For whoever may run programs beside the server.
 */
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { silentLog } from '../runtime/log/log.ts'
import { processEnvironment, standaloneEnv } from './config/env.ts'
import { ACCOUNT_CHAIN, listChainHeads, verifyChain } from './store/audit-chain.ts'
import { Database } from './store/database.ts'

const run = async (): Promise<boolean> => {
  const { SERVICE_DATABASE_URL: url } = parseEnv(
    standaloneEnv.pick({ SERVICE_DATABASE_URL: true }),
    processEnvironment(),
  )
  const database = new Database({ url, log: silentLog, maxConnections: 1 })
  let isSound = true
  try {
    const organizations = (await listChainHeads(database)).map(({ organizationId }) => organizationId)
    for (const organization of organizations) {
      const { events, head, broken } = await verifyChain(database, organization)
      const name = organization === ACCOUNT_CHAIN ? 'accounts' : organization
      isSound &&= broken === undefined
      console.log(
        broken === undefined
          ? `ok    ${name}: ${events} events, head ${head?.id} ${head?.hash}`
          : `BAD   ${name}: event ${broken.id} is ${broken.problem}; the ${events} before it are as they were written`,
      )
    }
  } finally {
    await database.stop()
  }
  return isSound
}

try {
  process.exitCode = (await run()) ? 0 : 1
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error)
  process.exitCode = 1
}
