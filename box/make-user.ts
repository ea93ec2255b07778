/** `make user EMAIL=…`: makes a user, or another token for one, and says who it is, and prints the token once; a running control plane or not. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type MadeUser, makeUser } from '../apiserver/commands/make-user.ts'
import { Database } from '../apiserver/store/database.ts'
import { DomainError } from '../lib/errors/domain-error.ts'
import { silentLog } from '../runtime/log/log.ts'
import { findPostmaster } from '../runtime/postgres/postmaster-pid.ts'
import { BoxError } from './box-error.ts'
import { boxConfig } from './config/config.ts'
import { processEnvironment } from './config/env.ts'
import { controlPlaneUrls } from './control-plane-databases.ts'
import { isLocked } from './folder-lock.ts'
import { describeHome, openHome } from './home-folder.ts'
import { LOCAL_OPERATOR, makeLocalOperatorToken } from './local-operator.ts'
import { readKeyring } from './master-key.ts'
import { noProgress } from './progress.ts'
import { runCommand } from './run-command.ts'
import { postgresAccount, startControlPlane } from './start-control-plane.ts'

const STARTING_MS = 30_000

const TOKEN_NAME = 'make user'

const makeToken = async (databaseUrl: string, email: string): Promise<MadeUser> => {
  if (email === LOCAL_OPERATOR)
    return makeLocalOperatorToken(databaseUrl, silentLog, { tokenName: TOKEN_NAME, replacesTokens: false })
  const database = new Database({ url: databaseUrl, log: silentLog, maxConnections: 1 })
  try {
    return await makeUser(database, { email, name: '', isOperator: false, tokenName: TOKEN_NAME })
  } catch (error) {
    if (error instanceof DomainError) throw new BoxError(`Cannot make "${email}": ${error.message}`)
    throw error
  } finally {
    await database.stop()
  }
}

/** The token alone goes to standard output, for `token=$(make -s user EMAIL=…)`; what people want to know goes beside it. */
const say = (email: string, { userId, created, token }: MadeUser): void => {
  console.error(`${created ? 'Made' : 'Another token for'} user:${userId} (${email})`)
  if (email !== LOCAL_OPERATOR)
    console.error(
      `Members see an organization: PUT /v1/organizations/{org}/members/${encodeURI(email)} {"role": "developer"}`,
    )
  console.error('Its token, shown once:')
  console.log(token)
}

/** Where the database of a running control plane listens. */
const socketOfRunning = async (controlPlane: string): Promise<string> => {
  const until = performance.now() + STARTING_MS
  while (performance.now() < until) {
    const postmaster = findPostmaster(join(controlPlane, 'data'))
    if (postmaster?.status === 'ready') return postmaster.socketFolder
    await sleep(100)
  }
  throw new BoxError('The control plane is starting, but its database does not answer: try again')
}

await runCommand(async () => {
  const config = boxConfig(processEnvironment())
  const { home: folder, postgres: settings, email } = config
  if (email === undefined) throw new BoxError('Say whom to make: make user EMAIL=ada@example.com')
  if (existsSync(folder) && isLocked(describeHome(folder).root)) {
    const { secrets, controlPlane } = describeHome(folder)
    const socketFolder = await socketOfRunning(controlPlane)
    say(email, await makeToken(controlPlaneUrls(secrets, { socketFolder, port: 5432 }).serving, email))
    return
  }
  const account = postgresAccount(settings.user)
  const home = await openHome(folder, account)
  try {
    const keyring = readKeyring(home.secrets, config)
    const { postgres, urls } = await startControlPlane(home, account, keyring, silentLog, noProgress)
    try {
      say(email, await makeToken(urls.serving, email))
    } finally {
      if (postgres.adopted) postgres.leave()
      else await postgres.stop()
    }
  } finally {
    home.release()
  }
})
