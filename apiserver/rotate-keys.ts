/**
 * `node apiserver/rotate-keys.ts`: wraps everything that is sealed in the control-plane database with SERVICE_KMS_MASTER_KEY,
 * while servers serve. Before: name the new key in SERVICE_KMS_PREVIOUS_MASTER_KEYS of every server, then change places with
 * the old one. After: take the old one out.
 */
import { createSealer, SealError } from '../lib/credentials/seal.ts'
import { parseMasterKey, parseMasterKeys } from '../runtime/config/master-keys.ts'
import { ConfigError, parseEnv } from '../runtime/config/parse-env.ts'
import { silentLog } from '../runtime/log/log.ts'
import { processEnvironment, standaloneEnv } from './config/env.ts'
import { Database } from './store/database.ts'
import { proveSealer, rewrapSealedRows } from './store/sealed-rows.ts'

const run = async (): Promise<void> => {
  const env = parseEnv(
    standaloneEnv.pick({
      SERVICE_DATABASE_URL: true,
      SERVICE_KMS_MASTER_KEY: true,
      SERVICE_KMS_PREVIOUS_MASTER_KEYS: true,
    }),
    processEnvironment(),
  )
  const sealer = createSealer({
    current: parseMasterKey('SERVICE_KMS_MASTER_KEY', env.SERVICE_KMS_MASTER_KEY),
    previous: parseMasterKeys('SERVICE_KMS_PREVIOUS_MASTER_KEYS', env.SERVICE_KMS_PREVIOUS_MASTER_KEYS),
  })
  const database = new Database({ url: env.SERVICE_DATABASE_URL, log: silentLog, maxConnections: 1 })
  try {
    await proveSealer(database, sealer)
    console.log(`Wrapped ${await rewrapSealedRows(database, sealer)} rows with master key ${sealer.kid}`)
  } finally {
    await database.stop()
  }
}

try {
  await run()
} catch (error) {
  console.error(error instanceof ConfigError || error instanceof SealError ? error.message : error)
  process.exitCode = 1
}
