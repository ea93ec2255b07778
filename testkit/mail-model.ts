/** What the models of the login run against: the commands of two replicas on one database, and their letters. */
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import { SsoProviders } from '../apiserver/auth/oidc/sso-providers.ts'
import { RecentTries } from '../apiserver/auth/passwords/recent-tries.ts'
import type { OpenCall } from '../apiserver/commands/call.ts'
import type { InvitationDependencies } from '../apiserver/commands/create-invitation.ts'
import type { LoginDependencies } from '../apiserver/commands/login/dependencies.ts'
import { openSecret } from '../apiserver/mail/letter-secret.ts'
import type { Mailbox } from '../apiserver/mail/post-letter.ts'
import type { Database } from '../apiserver/store/database.ts'
import { createSealer, type Sealer } from '../lib/credentials/seal.ts'
import { DomainError } from '../lib/errors/domain-error.ts'
import { silentLog } from '../runtime/log/log.ts'
import { type CommandWorld, commandWorld, TEST_LINKS } from './command-world.ts'
import { keepStatisticsFresh } from './fresh-statistics.ts'
import { openSession } from './open-sql.ts'

/** The hash of a password as the models make it, in the form of a real one. */
export const quickHash = (password: string): string => {
  const digest = createHash('sha256').update(password).digest('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$${digest}`
}
/** Takes no time: how passwords are hashed is not what these models are about. */
const QUICK_HASHER = {
  hash: async (password: string) => quickHash(password),
  fits: async (password: string, hash: string | undefined) => hash === quickHash(password),
  isFullFor: () => false,
} as unknown as LoginDependencies['hasher']

/** Which of two replicas. */
export type At = 0 | 1

/** What an action came to: its status, or the code of its refusal. */
export type Outcome = number | string

/** What models look at and let grow older, whoever serves: the rows. */
export interface ModelGround {
  readonly database: Database
  /** As it is kept of a password. */
  readonly hashOf: (password: string) => Promise<string>
  /** The letter that waits for an address: its name, and what is secret in it. */
  waiting(
    recipient: string,
  ): Promise<{ readonly id: string; readonly secret: Readonly<Record<string, string>> } | undefined>
  /** Lets time pass for everything that counts by an address. */
  pass(email: string, seconds: number): Promise<void>
}

export interface MailWorld extends CommandWorld, ModelGround {
  readonly login: readonly [LoginDependencies, LoginDependencies]
  readonly inviting: readonly [InvitationDependencies, InvitationDependencies]
}

export const modelGround = (
  database: Database,
  sealer: Sealer,
  hashOf: (password: string) => Promise<string>,
): ModelGround => ({
  database,
  hashOf,
  waiting: async recipient => {
    const row = await database.row<{ id: string; sealed: string }>(
      `select id, sealed_secret as sealed from mail_outbox where recipient = $1 and state = 'waiting'`,
      [recipient],
    )
    return row && { id: row.id, secret: openSecret(sealer, row.id, row.sealed) }
  },
  pass: async (email, seconds) => {
    await database.rows(
      `with a as (update attempts set hits = array(select h - make_interval(secs => $2) from unnest(hits) h order by h)
         where key = sha256($1::text::bytea)),
       i as (update invitations set expires_at = expires_at - make_interval(secs => $2) where email = $1)
       update magic_links set expires_at = expires_at - make_interval(secs => $2) where email = $1`,
      [email, seconds],
    )
  },
})

/** For what the models ask at each step, of a database that keeps thousands of sequences: nobody else asks it. */
const INDEXES = `
  create index on mail_outbox (recipient) where state = 'waiting';
  create index on account_events (user_id);
  create index on account_events ((metadata ->> 'token_id'));
  create index on audit_events (resource_id);
  create index on attempts (key);`

export const mailWorld = async (): Promise<MailWorld> => {
  const world = await commandWorld()
  const owner = world.plane.url('svc_owner')
  const session = await openSession({ connectionString: owner })
  await session.rows(INDEXES)
  await session.close()
  const endStatistics = await keepStatisticsFresh(owner)
  const sealer = createSealer({ current: randomBytes(32) })
  const mailbox: Mailbox = { sealer, wake: () => undefined }
  const codeKey = randomBytes(32)
  const rotationKey = randomBytes(32)
  const second = world.secondProcess()
  const login = (database: Database): LoginDependencies => ({
    database,
    log: silentLog,
    hasher: QUICK_HASHER,
    tries: new RecentTries(),
    sealer,
    providers: new SsoProviders({ allowed: [], caFile: undefined, log: silentLog }),
    settings: {
      sessions: { idle: 7200, absolute: 43_200, rotate: 900, rotationKey },
      lockout: { maxFailures: 10, windowSeconds: 900, lockoutSeconds: 900 },
      links: TEST_LINKS,
      codeKey,
      publicSignup: true,
    },
    mailbox,
  })
  return {
    ...world,
    ...modelGround(world.deps.database, sealer, async password => quickHash(password)),
    login: [login(world.deps.database), login(second.database)],
    inviting: [
      { ...world.deps, mailbox },
      { ...second, mailbox },
    ],
    stop: async () => {
      await endStatistics()
      await world.stop()
    },
  }
}

/** A call of nobody, from an address of its own. */
export const openCallOf = (): OpenCall => ({
  requestId: randomUUID(),
  clientIp: '203.0.113.7',
  clientKey: randomUUID(),
  userAgent: undefined,
  method: 'POST',
  route: '/v1/test',
})

/** What a command came to. */
export const outcomeOf = async (reply: Promise<{ readonly status: number }>): Promise<Outcome> => {
  try {
    return (await reply).status
  } catch (error) {
    assert.ok(error instanceof DomainError, String(error))
    return error.code
  }
}

/** Several sequences at once: what they are about is their own. */
const LANES = 8

/** Runs sequences of commands, each against a model and a real thing of its own. */
export const runSequences = async <Model extends object, Real>(
  commands: readonly fc.Arbitrary<AsyncCommand<Model, Real>>[],
  begin: () => Promise<{ readonly model: Model; readonly real: Real }>,
  sequences: number,
  maxCommands: number,
): Promise<number> => {
  let steps = 0
  const seed = Date.now() % 2 ** 31
  await Promise.all(
    Array.from({ length: LANES }, (_, lane) =>
      fc.assert(
        fc.asyncProperty(fc.commands([...commands], { maxCommands, size: 'max' }), async sequence => {
          steps += [...sequence].length
          await fc.asyncModelRun(begin, sequence)
        }),
        { numRuns: Math.ceil(sequences / LANES), seed: (seed + lane) | 0, endOnFailure: false },
      ),
    ),
  )
  return steps
}

/** Time passes: what is kept is made that much older, and the model's clock goes forward. */
export class Pass<Model extends { now: number }, Real> implements AsyncCommand<Model, Real> {
  readonly #seconds: number
  readonly #age: (real: Real, seconds: number, model: Model) => Promise<unknown>
  constructor(seconds: number, age: (real: Real, seconds: number, model: Model) => Promise<unknown>) {
    this.#seconds = seconds
    this.#age = age
  }
  check = (): boolean => true
  toString = (): string => `${this.#seconds} s pass`
  async run(model: Model, real: Real): Promise<void> {
    await this.#age(real, this.#seconds, model)
    model.now += this.#seconds
  }
}
