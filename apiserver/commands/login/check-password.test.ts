import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { isCode } from '../../../testkit/assert-code.ts'
import { callOf, type ModelAccount, modelAccount } from '../../../testkit/login-model.ts'
import { type MailWorld, mailWorld, openCallOf, outcomeOf, quickHash } from '../../../testkit/mail-model.ts'
import { RecentTries } from '../../auth/passwords/recent-tries.ts'
import type { Sql } from '../../store/sql.ts'
import type { Principal } from '../call.ts'
import { provePassword } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { signIn } from './sign-in.ts'

const RIGHT = 'one red kite over the moor'

/** Compares passwords and tells nobody, until each is let go: all of them are under way at the same moment. */
class HeldHasher {
  readonly #held: (() => void)[] = []

  get held(): number {
    return this.#held.length
  }

  isFullFor = (): boolean => false
  fits = (password: string, hash: string | undefined): Promise<boolean> =>
    new Promise(resolve => this.#held.push(() => resolve(hash === quickHash(password))))

  /** In the order in which they came. */
  letGo(count = this.held): void {
    for (const go of this.#held.splice(0, count)) go()
  }
}

/** A replica whose statements are noted, by their texts. */
const notingStatements = (
  deps: LoginDependencies,
): { readonly deps: LoginDependencies; readonly statements: readonly string[] } => {
  const statements: string[] = []
  const noting = (sql: Sql): Sql => ({
    rows: (text, values) => (statements.push(text), sql.rows(text, values)),
    row: (text, values) => (statements.push(text), sql.row(text, values)),
  })
  const { database } = deps
  const noted = {
    ...noting(database),
    transaction: <T>(work: (sql: Sql) => Promise<T>) => database.transaction(sql => work(noting(sql))),
  }
  return { deps: { ...deps, database: noted as unknown as LoginDependencies['database'] }, statements }
}

describe('passwords at the same moment', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  const holding = (hasher: HeldHasher): readonly LoginDependencies[] =>
    world.login.map(deps => ({ ...deps, hasher: hasher as unknown as LoginDependencies['hasher'] }))
  const heldAre = async (hasher: HeldHasher, count: number): Promise<void> => {
    while (hasher.held < count) await sleep(1)
  }
  const principalOf = ({ userId }: ModelAccount): Principal => ({
    kind: 'session',
    subject: `user:${userId}`,
    userId,
    credentialId: 'ses_test',
    isOperator: false,
    role: undefined,
    scopes: undefined,
  })
  const failuresOf = async ({ email, userId }: ModelAccount) =>
    world.deps.database.row<{ counted: number; locked: boolean; told: readonly string[] }>(
      `select coalesce((select cardinality(failed) from sign_in_failures where account_key = sha256($1::text::bytea)), 0) as counted,
         exists (select 1 from sign_in_failures where account_key = sha256($1::text::bytea) and locked_until > now()) as locked,
         coalesce((select array_agg(type order by id) from account_events where user_id = $2 and type in ('sign_in_failed', 'locked')), '{}') as told`,
      [email, userId],
    )
  const NONE = { counted: 0, locked: false, told: [] }

  /** Sends them by turns to two replicas, lets them be judged one after another once all were compared, and answers what each came to. */
  const judgedInOrder = async (email: string, passwords: readonly string[]): Promise<readonly (number | string)[]> => {
    const hasher = new HeldHasher()
    const replicas = holding(hasher)
    const answers: Promise<number | string>[] = []
    for (const [n, password] of passwords.entries()) {
      answers.push(outcomeOf(signIn(replicas[n % 2]!, openCallOf(), { email, password })))
      await heldAre(hasher, n + 1)
    }
    const outcomes: (number | string)[] = []
    for (const answer of answers) {
      hasher.letGo(1)
      outcomes.push(await answer)
    }
    return outcomes
  }
  const wrong = (count: number): string[] => Array.from({ length: count }, (_, n) => `wrong ${n}`)
  const refused = (count: number): string[] => Array.from({ length: count }, () => 'invalid_credentials')

  it('that are right are all let in, however many, and leave neither a failure nor a lock', async () => {
    const account = await modelAccount(world, RIGHT)
    const hasher = new HeldHasher()
    const replicas = holding(hasher)
    const answers = Array.from({ length: 30 }, (_, n) =>
      outcomeOf(signIn(replicas[n % 2]!, openCallOf(), { email: account.email, password: RIGHT })),
    )
    await heldAre(hasher, 30)
    hasher.letGo()
    assert.deepEqual(await Promise.all(answers), Array(30).fill(200))
    assert.deepEqual(await failuresOf(account), NONE)
  })

  it('that prove who is signed in are all taken, however many, and leave neither a failure nor a lock', async () => {
    const account = await modelAccount(world, RIGHT)
    const hasher = new HeldHasher()
    const replicas = holding(hasher)
    const proofs = Array.from({ length: 30 }, (_, n) =>
      provePassword(replicas[n % 2]!, callOf(principalOf(account), openCallOf()), RIGHT),
    )
    await heldAre(hasher, 30)
    hasher.letGo()
    assert.deepEqual(
      (await Promise.all(proofs)).map(({ userId }) => userId),
      Array(30).fill(account.userId),
    )
    assert.deepEqual(await failuresOf(account), NONE)
  })

  it('tell nothing of the right one when ten wrong ones were judged before it, although it was compared before any was', async () => {
    const account = await modelAccount(world, RIGHT)
    assert.deepEqual(await judgedInOrder(account.email, [...wrong(10), RIGHT, ...wrong(9), RIGHT]), refused(21))
    // Of those behind the lock none counts.
    const left = await failuresOf(account)
    assert.deepEqual([left?.counted, left?.locked], [10, true])
    assert.deepEqual(left?.told, [
      ...Array<string>(9).fill('sign_in_failed'),
      'locked',
      ...Array<string>(11).fill('sign_in_failed'),
    ])
  })

  it('let the right one in that is judged after nine wrong ones, and the ten after it count anew', async () => {
    const account = await modelAccount(world, RIGHT)
    const passwords = [...wrong(9), RIGHT, ...wrong(10), RIGHT]
    assert.deepEqual(await judgedInOrder(account.email, passwords), [...refused(9), 200, ...refused(11)])
  })

  it('are judged one by one when all are let go at once: ten wrong ones count, and one of them locks', async () => {
    const account = await modelAccount(world, RIGHT)
    const hasher = new HeldHasher()
    const replicas = holding(hasher)
    const answers = wrong(30).map((password, n) =>
      outcomeOf(signIn(replicas[n % 2]!, openCallOf(), { email: account.email, password })),
    )
    await heldAre(hasher, 30)
    hasher.letGo()
    assert.deepEqual(await Promise.all(answers), refused(30))
    const left = await failuresOf(account)
    assert.deepEqual([left?.counted, left?.locked], [10, true])
    assert.equal(left?.told.filter(type => type === 'locked').length, 1)
  })

  it('count for nothing that nobody judged, as when their process ends: nobody was told of them', async () => {
    const account = await modelAccount(world, RIGHT)
    const hasher = new HeldHasher()
    const [ended] = holding(hasher)
    const call = openCallOf()
    const lost = wrong(15).map(password => signIn(ended!, call, { email: account.email, password }))
    await heldAre(hasher, 15)
    assert.deepEqual(await failuresOf(account), NONE)
    const own = { email: account.email, password: RIGHT }
    assert.equal(await outcomeOf(signIn(world.login[1], openCallOf(), own)), 200)
    // Of their client address they count all the same.
    for (let n = 0; n < 5; n++) await signIn(world.login[1], call, own)
    await assert.rejects(signIn(world.login[1], call, own), isCode('sign_in_rate_limited'))
    hasher.letGo()
    await Promise.allSettled(lost)
  })

  it('cost the same statements, whatever is wrong with them', async () => {
    const [locked, disabled, fine] = [
      await modelAccount(world, RIGHT),
      await modelAccount(world, RIGHT),
      await modelAccount(world, RIGHT),
    ]
    await judgedInOrder(locked.email, wrong(10))
    await world.deps.database.rows('update users set disabled_at = now() where user_id = $1', [disabled.userId])
    /** The statements of a refused sign-in, in order. */
    const statementsOf = async (email: string, password: string): Promise<readonly string[]> => {
      const noting = notingStatements(world.login[0])
      await assert.rejects(signIn(noting.deps, openCallOf(), { email, password }), isCode('invalid_credentials'))
      return noting.statements
    }
    const ofWrong = await statementsOf(fine.email, 'wrong')
    assert.equal(ofWrong.length, 6)
    for (const [email, password] of [
      ['nobody@example.com', RIGHT],
      [locked.email, 'wrong'],
      [locked.email, RIGHT],
      [disabled.email, RIGHT],
    ] as const)
      assert.deepEqual(await statementsOf(email, password), ofWrong)
  })
})

describe('a password that nobody will have time to look at', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  /** A replica whose queue is full for everybody from a rank on. */
  const fullFrom = (rank: number) => {
    const fits = async (password: string, hash: string | undefined) => hash === quickHash(password)
    const hasher = { fits, isFullFor: (of: number) => of >= rank, turnAway: busy }
    const tries = new RecentTries()
    const deps = { ...world.login[0], tries, hasher: hasher as unknown as LoginDependencies['hasher'] }
    return notingStatements(deps)
  }
  const busy = () => new DomainError('login_busy', 'Too many people sign in at the moment, try again')

  it('is turned away for one read at each of the first five tries of its client address, and for nothing from then on', async () => {
    const { email } = await modelAccount(world, RIGHT)
    const { deps, statements } = fullFrom(1)
    const call = openCallOf()
    const costs: number[] = []
    for (let n = 0; n < 8; n++) {
      const before = statements.length
      assert.equal(await outcomeOf(signIn(deps, call, { email, password: RIGHT })), 'login_busy')
      costs.push(statements.length - before)
    }
    assert.deepEqual(costs, [1, 1, 1, 1, 1, 0, 0, 0])
    assert.ok(statements.every(text => text.startsWith('select 1 from attempts ')))
  })

  it('is looked at all the same where its account signed in from there before, unless known ones alone are too many', async () => {
    const { email } = await modelAccount(world, RIGHT)
    const call = openCallOf()
    assert.equal(await outcomeOf(signIn(world.login[1], call, { email, password: RIGHT })), 200)
    assert.equal(await outcomeOf(signIn(fullFrom(1).deps, call, { email, password: RIGHT })), 200)
    const { deps, statements } = fullFrom(0)
    assert.equal(await outcomeOf(signIn(deps, call, { email, password: RIGHT })), 'login_busy')
    assert.deepEqual(statements, [])
  })
})
