import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc, { type AsyncCommand } from 'fast-check'
import { sized } from '../../testkit/full.ts'
import {
  type At,
  type MailWorld,
  type ModelGround,
  mailWorld,
  type Outcome,
  openCallOf,
  outcomeOf,
  Pass,
  runSequences,
} from '../../testkit/mail-model.ts'
import { type ModelProcesses, modelProcesses } from '../../testkit/model-processes.ts'
import { requestMagicLink } from '../commands/login/request-magic-link.ts'
import { verifyMagicLink } from '../commands/login/verify-magic-link.ts'
import type { MagicLinkVerifyBody } from '../contract/login/magic-links.ts'

/** What the model does to the service. */
interface MagicLinks {
  request(at: At, email: string): Promise<Outcome>
  verify(at: At, body: MagicLinkVerifyBody): Promise<Outcome>
}

const byCommands = ({ login }: MailWorld): MagicLinks => ({
  request: (at, email) => outcomeOf(requestMagicLink(login[at], openCallOf(), email)),
  verify: (at, body) => outcomeOf(verifyMagicLink(login[at], openCallOf(), body)),
})

const throughHttp = ({ outcome }: ModelProcesses): MagicLinks => ({
  request: (at, email) => outcome(at, 'requestMagicLink', { body: { email } }),
  verify: (at, body) => outcome(at, 'verifyMagicLink', { body }),
})

interface Link {
  readonly token: string
  readonly code: string
  readonly until: number
  guesses: number
}

/** What is true of one address, in seconds of its own clock. */
interface Model {
  now: number
  /** Requests that were counted. */
  requests: number[]
  letterAt: number
  letterId: string | undefined
  link: Link | undefined
  /** Of links that were spent, replaced or ran out. */
  old: string[]
  /** Codes that were compared today. */
  codes: number[]
}

interface Real {
  readonly ground: ModelGround
  readonly links: MagicLinks
  readonly email: string
}

type Step = AsyncCommand<Model, Real>
const INVALID = 'invalid_magic_link'

const recent = (times: readonly number[], now: number, window: number): number[] =>
  times.filter(time => now - time < window)
const live = ({ link, now }: Model): Link | undefined => (link !== undefined && now < link.until ? link : undefined)
const end = (model: Model): void => {
  if (model.link !== undefined) model.old.push(model.link.token)
  model.link = undefined
}

/** Counts a code in the model; whether it would be looked at. */
const countCode = (model: Model): boolean => {
  model.codes = recent(model.codes, model.now, 86_400)
  const allowed = model.codes.length < 20
  if (allowed) model.codes.push(model.now)
  const link = live(model)
  const guessable = link !== undefined && link.guesses < 5
  if (guessable) link.guesses++
  return allowed && guessable
}

class Request implements Step {
  readonly at: At
  constructor(at: At) {
    this.at = at
  }
  check = (): boolean => true
  toString = (): string => `request at ${this.at}`
  async run(model: Model, { ground, links, email }: Real): Promise<void> {
    assert.equal(await links.request(this.at, email), 202)
    model.requests = recent(model.requests, model.now, 300)
    const counted = model.requests.length < 5
    if (counted) model.requests.push(model.now)
    const writes = counted && model.now - model.letterAt >= 60
    const letter = await ground.waiting(email)
    if (!writes) {
      assert.equal(letter?.id, model.letterId)
      return
    }
    assert.notEqual(letter?.id, model.letterId)
    end(model)
    const { token, code } = letter!.secret
    model.letterId = letter!.id
    model.letterAt = model.now
    model.link = { token: token!, code: code!, until: model.now + 900, guesses: 0 }
  }
}

class UseLink implements Step {
  readonly at: At
  readonly which: number
  constructor(at: At, which: number) {
    this.at = at
    this.which = which
  }
  check = (model: Readonly<Model>): boolean => model.link !== undefined || model.old.length > 0
  toString = (): string => `link ${this.which} at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const old = model.old[this.which]
    const token = old ?? model.link?.token ?? model.old[0]!
    const good = old === undefined && live(model)?.token === token
    assert.equal(await real.links.verify(this.at, { token }), good ? 200 : INVALID)
    if (good) end(model)
  }
}

class TypeCode implements Step {
  readonly at: At
  readonly right: boolean
  constructor(at: At, right: boolean) {
    this.at = at
    this.right = right
  }
  check = (): boolean => true
  toString = (): string => `${this.right ? 'right' : 'wrong'} code at ${this.at}`
  async run(model: Model, real: Real): Promise<void> {
    const kept = model.link?.code ?? '000000'
    const code = this.right ? kept : kept === '000000' ? '111111' : '000000'
    const good = countCode(model) && this.right
    assert.equal(await real.links.verify(this.at, { email: real.email, code }), good ? 200 : INVALID)
    if (!good) return
    end(model)
    model.codes = []
  }
}

class Guesses implements Step {
  check = (): boolean => true
  toString = (): string => 'five wrong codes at once'
  async run(model: Model, real: Real): Promise<void> {
    const code = model.link?.code === '000000' ? '111111' : '000000'
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, n) => real.links.verify(n % 2 === 0 ? 0 : 1, { email: real.email, code })),
    )
    assert.ok(answers.every(answer => answer === INVALID))
    for (const _each of answers) countCode(model)
    const row = await real.ground.database.row<{ guesses: number }>(
      'select guesses from magic_links where email = $1 and expires_at > now()',
      [real.email],
    )
    assert.equal(row?.guesses, live(model)?.guesses)
  }
}

class LinkAndCode implements Step {
  check = (model: Readonly<Model>): boolean => model.link !== undefined
  toString = (): string => 'link and code at the same moment, on two replicas'
  async run(model: Model, real: Real): Promise<void> {
    const { token, code } = model.link!
    const isLive = live(model) !== undefined
    const answers = await Promise.all([
      real.links.verify(0, { token }),
      real.links.verify(1, { email: real.email, code }),
    ])
    const codeCounts = countCode(model)
    assert.equal(answers.filter(answer => answer === 200).length, isLive ? 1 : 0, answers.join())
    if (!codeCounts) assert.notEqual(answers[1], 200)
    if (answers[1] === 200) model.codes = []
    if (isLive) end(model)
  }
}

const age = async ({ ground, email }: Real, seconds: number): Promise<void> => {
  await ground.pass(email, seconds)
}

const commands = () => {
  const at = fc.constantFrom<At>(0, 1)
  return [
    at.map(each => new Request(each)),
    at.map(each => new Request(each)),
    fc.tuple(at, fc.nat(2)).map(([each, which]) => new UseLink(each, which)),
    at.map(each => new UseLink(each, 99)),
    fc.tuple(at, fc.boolean()).map(([each, right]) => new TypeCode(each, right)),
    fc.constant(new Guesses()),
    fc.constant(new LinkAndCode()),
    fc.constantFrom(30, 61, 301, 800, 901).map(seconds => new Pass(seconds, age)),
  ]
}

const beginOn = (ground: ModelGround, links: MagicLinks) => async () => {
  const model: Model = {
    now: 0,
    requests: [],
    letterAt: -1e9,
    letterId: undefined,
    link: undefined,
    old: [],
    codes: [],
  }
  return { model, real: { ground, links, email: `${randomUUID()}@example.com` } }
}

describe('email links, against a model', () => {
  let world: MailWorld
  before(async () => {
    world = await mailWorld()
  })
  after(() => world.stop())

  it('do what the model says, whatever is asked in whichever order, on two replicas', async () => {
    const sequences = sized(300, 10_000)
    const steps = await runSequences(commands(), beginOn(world, byCommands(world)), sequences, 6)
    assert.ok(steps > sequences)
  }).timeout(900_000)

  it('do so through HTTP, at two server processes', async () => {
    const processes = await modelProcesses()
    const sequences = sized(8, 50)
    const steps = await runSequences(commands(), beginOn(processes, throughHttp(processes)), sequences, 6)
    assert.ok(steps > sequences)
  }).timeout(120_000)
})
