/** What callers want during a storm: mutating calls with a key, repeated until there is an answer, as a careful client does. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { environmentType } from '../../crds/environment-type.ts'
import type { ResourceStore } from '../../runtime/store/resource-store.ts'
import type { SeededRandom } from '../../testkit/seeded-random.ts'
import type { Answer, ApiClient, OperationBody } from '../api-client.ts'
import type { Tenant } from '../tenant.ts'

const VERBS = { create: 5, suspend: 3, resume: 3, delete: 2, renew: 3, update: 2 }
export type Verb = keyof typeof VERBS

/** One wish and what became of it. */
export interface Wish {
  readonly verb: Verb
  readonly id: string
  readonly method: string
  readonly path: string
  readonly body: unknown
  readonly key: string
  /** Calls that were made for it; those before the last one may or may not have arrived. */
  calls: number
  answer?: Answer<OperationBody>
}

/** Rows that a database acknowledged, of the environment with this uid. */
export interface Written {
  readonly id: string
  readonly uid: string
  readonly value: string
}

const LONGEST_WAIT_MS = 90_000

/** Whether a call was answered for good; what is not is repeated with its key. */
const isFinal = ({ status, body }: Answer<unknown>): boolean =>
  status < 500 && (body as { code?: string } | undefined)?.code !== 'idempotency_in_progress'

export class Callers {
  readonly wishes: Wish[] = []
  readonly written: Written[] = []
  readonly #tenant: Tenant
  readonly #store: ResourceStore
  readonly #ids: readonly string[]
  #over = false

  constructor(tenant: Tenant, store: ResourceStore, ids: readonly string[]) {
    this.#tenant = tenant
    this.#store = store
    this.#ids = ids
  }

  /** Lets everybody finish the wish they are at. */
  end(): void {
    this.#over = true
  }

  /** One caller's day: wishes, one after the other, and rows in between. */
  async live(random: SeededRandom): Promise<void> {
    while (!this.#isOver()) {
      await sleep(random.between(0, 250))
      const id = random.pick(this.#ids)
      if (random.next() < 0.3) await this.#write(id)
      else await this.ask(this.#wish(random, random.weighted(VERBS), id))
    }
  }

  /** Calls until there is a final answer. */
  async ask(wish: Wish): Promise<Answer<OperationBody>> {
    const until = Date.now() + LONGEST_WAIT_MS
    for (;;) {
      assert.ok(Date.now() < until, `No answer to ${JSON.stringify(wish)} within ${LONGEST_WAIT_MS} ms`)
      wish.calls++
      const { method, path, body, key } = wish
      try {
        const answer = await this.#api.call<OperationBody>(method, path, { key, deadlineMs: 15_000, body })
        if (isFinal(answer)) return (wish.answer = answer)
      } catch {
        // The control plane is away.
      }
      await sleep(100)
    }
  }

  get #api(): ApiClient {
    return this.#tenant.world.api
  }

  #isOver(): boolean {
    return this.#over
  }

  #wish(random: SeededRandom, verb: Verb, id: string): Wish {
    const { organizationId: organization_id, projectId: project_id } = this.#tenant
    const path = this.#tenant.path(id)
    const hours = 2 + Math.floor(random.next() * 100)
    const identity = { organization_id, project_id, environment_id: id }
    const call = {
      create: ['POST', '/v1/environments', { ...identity, kind: 'preview', ttl_hours: hours }],
      suspend: ['POST', `${path}/suspend`, undefined],
      resume: ['POST', `${path}/resume`, undefined],
      delete: ['DELETE', path, undefined],
      renew: ['POST', `${path}/renew`, { ttl_hours: hours }],
      update: ['PATCH', path, { deletion_policy: random.pick(['retain', 'delete']) }],
    }[verb] as [string, string, unknown]
    const wish = { verb, id, method: call[0], path: call[1], body: call[2], key: randomUUID(), calls: 0 }
    this.wishes.push(wish)
    return wish
  }

  /** Writes a row; only one that was acknowledged, by a database whose environment stayed the same meanwhile, counts. */
  async #write(id: string): Promise<void> {
    const value = randomUUID()
    try {
      const uid = await this.#uidOf(id)
      const session = await this.#tenant.open(id)
      try {
        await session.rows('create table if not exists kept (value text)')
        await session.rows(`insert into kept values ('${value}')`)
      } finally {
        await session.close()
      }
      if (uid !== undefined && uid === (await this.#uidOf(id))) this.written.push({ id, uid, value })
    } catch {
      // Whatever is away: nothing was promised.
    }
  }

  async #uidOf(id: string): Promise<string | undefined> {
    return (await this.#store.get(environmentType, this.#tenant.key(id)))?.metadata.uid
  }
}
