/** Callers with a password, and their sessions. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { hash } from '@node-rs/argon2'
import type { SignedIn } from '../apiserver/contract/login/people.ts'
import { newId } from '../lib/model/time-ordered-id.ts'
import { ApiClient } from './api-client.ts'
import type { ApiCaller, TestApiServer } from './api-server.ts'
import type { ControlPlaneDatabase } from './control-plane-database.ts'

export const TEST_PASSWORD = 'correct horse battery staple'
let made: Promise<string> | undefined
const testHash = (): Promise<string> =>
  (made ??= hash(TEST_PASSWORD, { memoryCost: 19_456, timeCost: 2, parallelism: 1 }))

/** Gives an account the test password, as if it had set it itself. */
export const givePassword = async (api: TestApiServer, userId: string): Promise<void> => {
  await api.plane.database.rows(
    'insert into passwords (user_id, hash) values ($1, $2) on conflict (user_id) do update set hash = excluded.hash',
    [userId, await testHash()],
  )
}

/** A session of somebody. */
export interface TestSession extends SignedIn {
  readonly client: ApiClient
}

/** A client address of its own, where the server under test trusts its peers to say one: limits are by address. */
export const fromAnywhere = (): Readonly<Record<string, string>> => ({
  'X-Forwarded-For': `10.${randomBytes(3).join('.')}`,
})

/** Signs somebody in, who needs no password before, and has no second factor then. */
export const signInAs = async (api: TestApiServer, caller: ApiCaller, url = api.url): Promise<TestSession> => {
  await givePassword(api, caller.userId)
  await api.plane.database.rows('delete from second_factors where user_id = $1', [caller.userId])
  const answer = await new ApiClient(url).call('signIn', {
    body: { email: caller.email, password: TEST_PASSWORD },
    headers: fromAnywhere(),
  })
  assert.equal(answer.status, 200, answer.text)
  return { ...answer.body, client: new ApiClient(url, answer.body.token) }
}

/** Accounts with the test password, on a database; answers their addresses. */
export const passwordAccounts = async ({ database }: ControlPlaneDatabase, count: number): Promise<string[]> => {
  const emails = Array.from({ length: count }, () => `${randomUUID()}@example.com`)
  await database.rows(
    `with u as (insert into users (user_id, email, name)
       select i, e, 'Somebody' from unnest($1::text[], $2::text[]) t (i, e) returning user_id)
     insert into passwords (user_id, hash) select user_id, $3 from u`,
    [emails.map(() => newId('usr')), emails, await testHash()],
  )
  return emails
}
