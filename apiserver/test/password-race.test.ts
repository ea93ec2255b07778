import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { isCode } from '../../testkit/assert-code.ts'
import { sized } from '../../testkit/full.ts'
import { callOf, type ModelAccount, modelAccount, sessionsOf } from '../../testkit/login-model.ts'
import { type At, type MailWorld, mailWorld, openCallOf, outcomeOf } from '../../testkit/mail-model.ts'
import type { Principal } from '../commands/call.ts'
import { changePassword } from '../commands/login/change-password.ts'
import { completeReset, issueReset, previewReset } from '../commands/login/reset-password.ts'
import { signIn } from '../commands/login/sign-in.ts'

const BEFORE = 'one red kite over the moor'
const CHANGED = 'two grey seals on the rock'
const RESET = 'three brown hares in a field'
const ROUNDS = sized(50, 500)

const operator = ({ userId }: ModelAccount): Principal => ({
  kind: 'session',
  subject: `user:${userId}`,
  userId,
  credentialId: 'ses_test',
  isOperator: true,
  role: undefined,
  scopes: undefined,
})

describe('a link for a new password, at the moment at which the password is changed', () => {
  let world: MailWorld
  let find: ReturnType<typeof sessionsOf>
  let administrator: Principal
  before(async () => {
    world = await mailWorld()
    find = sessionsOf(world)
    administrator = operator(await modelAccount(world, BEFORE, { isOperator: true }))
  })
  after(() => world.stop())

  const enter = async (at: At, { email }: ModelAccount, password: string) => {
    const { body } = await signIn(world.login[at], openCallOf(), { email, password })
    assert.ok(body !== undefined && !Buffer.isBuffer(body))
    return body
  }
  const issue = async ({ email }: ModelAccount): Promise<string> => {
    const { body } = await issueReset(world.login[0], callOf(administrator), { email, admin_password: BEFORE })
    assert.ok(body !== undefined && !Buffer.isBuffer(body))
    return body.reset_url.split('/').at(-1) ?? ''
  }
  const complete = (at: At, token: string) =>
    outcomeOf(completeReset(world.login[at], openCallOf(), { token, new_password: RESET }))
  const sessionIdsOf = async ({ userId }: ModelAccount): Promise<string[]> =>
    (await world.deps.database.rows<{ id: string }>('select id from sessions where user_id = $1', [userId])).map(
      ({ id }) => id,
    )
  /** Somewhere within what the others take. */
  const soon = <T>(work: () => Promise<T>): Promise<T> => sleep(Math.random() * 4).then(work)

  it(`leaves one password in force and no session of another one, ${ROUNDS} times on two replicas`, async () => {
    const winners = new Map<string, number>()
    for (let round = 0; round < ROUNDS; round++) {
      const account = await modelAccount(world, BEFORE)
      const [own] = [await enter(0, account, BEFORE), await enter(1, account, BEFORE)]
      const token = await issue(account)
      const { principal } = (await find(0, own.token)) ?? assert.fail()
      const change = () =>
        outcomeOf(
          changePassword(world.login[0], callOf(principal), { current_password: BEFORE, new_password: CHANGED }),
        )
      const raced = (at: At) =>
        outcomeOf(signIn(world.login[at], openCallOf(), { email: account.email, password: BEFORE }))
      // On a busy machine the same one may come first every time: now and then the other waits for it.
      const first = round % 10
      const changing = first === 0 ? change() : undefined
      const completing =
        first === 1 ? complete(1, token) : soon(() => (changing ?? Promise.resolve()).then(() => complete(1, token)))
      const [changed, completed, ...entered] = await Promise.all([
        changing ?? soon(() => (first === 1 ? completing.then(change) : change())),
        completing,
        soon(() => raced(0)),
        soon(() => raced(1)),
      ])
      const won = changed === 204 ? 'change' : 'link'
      winners.set(won, (winners.get(won) ?? 0) + 1)
      const expected = won === 'change' ? [204, 'invalid_reset_token'] : ['invalid_credentials', 204]
      assert.deepEqual([changed, completed], expected)
      for (const outcome of entered) assert.ok([200, 'invalid_credentials'].includes(outcome), String(outcome))
      assert.deepEqual(await sessionIdsOf(account), won === 'change' ? [own.session.session_id] : [])
      assert.equal(await outcomeOf(previewReset(world.login[0], openCallOf(), token)), 'invalid_reset_token')
      for (const [password, holds] of [
        [BEFORE, false],
        [CHANGED, won === 'change'],
        [RESET, won === 'link'],
      ] as const) {
        const attempt = enter(0, account, password)
        if (holds) await attempt
        else await assert.rejects(attempt, isCode('invalid_credentials'))
      }
    }
    assert.equal(winners.size, 2, 'each of them comes first now and then')
  }).timeout(120_000)

  it('waits for whoever changes it before it touches the link: the two cannot wait for each other', async () => {
    const account = await modelAccount(world, BEFORE)
    const token = await issue(account)
    const client = new pg.Client({ connectionString: world.plane.url('postgres') })
    await client.connect()
    try {
      await client.query('begin')
      await client.query('select 1 from passwords where user_id = $1 for update', [account.userId])
      const completing = complete(1, token)
      const waiting = `select 1 from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()`
      while ((await client.query(waiting)).rowCount === 0) await sleep(5)
      // Refused at once if somebody held it.
      await client.query('select 1 from password_resets where user_id = $1 for update nowait', [account.userId])
      await client.query('commit')
      assert.equal(await completing, 204)
    } finally {
      await client.end()
    }
  })
})
