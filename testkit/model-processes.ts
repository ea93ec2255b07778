/**
 * What the models run against through HTTP: two API servers that are processes of their own, on one database. All models of a test run
 * share them.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { hash } from '@node-rs/argon2'
import { openServerKeys } from '../apiserver/server-keys.ts'
import { newId } from '../lib/model/time-ordered-id.ts'
import { ApiClient, type ApiRequest, type OperationId } from './api-client.ts'
import { processPlace, startApiProcess } from './api-process.ts'
import { atEnd } from './at-end.ts'
import { modelSession } from './login-model.ts'
import { type At, type ModelGround, modelGround, type Outcome } from './mail-model.ts'
import { fromAnywhere } from './sign-in.ts'

export interface ModelProcesses extends ModelGround {
  /** Asks one of them, from a client address of its own, as whoever has the token. */
  readonly ask: <Id extends OperationId>(
    at: At,
    operationId: Id,
    request?: ApiRequest,
    token?: string,
  ) => ReturnType<typeof ApiClient.prototype.call<Id>>
  /** The same, for whom what it came to is enough. */
  readonly outcome: (at: At, operationId: OperationId, request?: ApiRequest, token?: string) => Promise<Outcome>
  /** Derives the tokens that follow others in a session. */
  readonly rotationKey: Buffer
  /** Waits until both wrote down when the sessions were last used that were used before this. */
  readonly usesAreWritten: () => Promise<void>
}

/** What an answer came to. */
export const outcomeIn = ({
  status,
  body,
}: {
  readonly status: number
  readonly body: { readonly code: string }
}): Outcome => (status < 300 ? status : body.code)

/** A relay that ends every connection: letters wait, and a model reads them where they do. */
const closedRelay = async (): Promise<string> => {
  const relay = createServer(socket => socket.destroy()).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  atEnd(async () => {
    relay.close()
  })
  const address = relay.address()
  return typeof address === 'object' && address !== null ? `https://127.0.0.1:${address.port}/` : ''
}

const start = async (): Promise<ModelProcesses> => {
  const place = await processPlace({
    SERVICE_TRUSTED_PROXIES: '127.0.0.0/8',
    SERVICE_CONSOLE_URL: 'https://console.example.com',
    SERVICE_PUBLIC_SIGNUP: '1',
    SERVICE_MAIL_WEBHOOK_URL: await closedRelay(),
    SERVICE_MAIL_WEBHOOK_TOKEN: 'canary-relay-token-of-models-0123456789',
  })
  const { database } = place.plane
  atEnd(() => database.stop())
  const processes = await Promise.all([startApiProcess(place), startApiProcess(place)])
  atEnd(async () => {
    await Promise.all(processes.map(each => each.stop()))
  })
  const urls = processes.map(({ url }) => url)
  const masterKey = Buffer.from(place.environment['SERVICE_KMS_MASTER_KEY'] ?? '', 'base64')
  const keys = await openServerKeys({ current: masterKey }, database, { rewrap: false, patienceMs: 0 })
  const hashes = new Map<string, Promise<string>>()
  const ground = modelGround(database, keys.sealer, password => {
    const made = hashes.get(password) ?? hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 })
    hashes.set(password, made)
    return made
  })
  const ask = <Id extends OperationId>(at: At, operationId: Id, request: ApiRequest = {}, token?: string) =>
    new ApiClient(urls[at] ?? '', token).call(operationId, {
      ...request,
      headers: { ...fromAnywhere(), ...request.headers },
    })
  /** What a server notes of uses it writes all at once: with this one, all before it. */
  const useIsWritten = async (at: At, userId: string): Promise<void> => {
    const { id, token } = await modelSession(ground, userId)
    await database.rows(`update sessions set last_used_at = now() - interval '2 minutes' where id = $1`, [id])
    await ask(at, 'getSession', {}, token)
    const sql = `select 1 from sessions where id = $1 and last_used_at > now() - interval '1 minute'`
    while ((await database.row(sql, [id])) === undefined) await sleep(10)
    await database.rows('delete from sessions where id = $1', [id])
  }
  const witness = newId('usr')
  await database.rows(`insert into users (user_id, email, name) values ($1, 'witness@example.com', 'Witness')`, [
    witness,
  ])
  return {
    ...ground,
    rotationKey: keys.rotationKey,
    ask,
    outcome: async (at, operationId, request, token) => outcomeIn(await ask(at, operationId, request, token)),
    usesAreWritten: async () => {
      await Promise.all([useIsWritten(0, witness), useIsWritten(1, witness)])
    },
  }
}

let running: Promise<ModelProcesses> | undefined

/** Those of this test run; they end with it. */
export const modelProcesses = (): Promise<ModelProcesses> => (running ??= start())
