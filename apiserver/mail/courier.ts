/**
 * Takes letters out of the outbox and has them carried away. Every replica runs one. A letter is leased for longer than an
 * attempt may take, so two replicas never carry the same one at once; one that died in the middle is followed by another
 * after that: a letter leaves at least once.
 */
import { randomUUID } from 'node:crypto'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Sealer } from '../../lib/credentials/seal.ts'
import { steadyBackoffMs } from '../../runtime/controller/backoff.ts'
import type { Log } from '../../runtime/log/log.ts'
import type { Database } from '../store/database.ts'
import {
  giveUpExpiredLetters,
  type LeasedLetter,
  leaseLetters,
  postponeLetter,
  settleLetter,
  waitingLetters,
} from '../store/mail-outbox.ts'
import { openSecret } from './letter-secret.ts'
import { writeLetter } from './letters/write-letter.ts'
import { MailError, type MailTransport } from './mail-transport.ts'

/** Of one attempt, whatever the other side does. */
const ATTEMPT_MS = 30_000
/** Longer than an attempt: whoever leases it next meets nobody. */
const LEASE_SECONDS = 60
const AT_ONCE = 4
const POLL_MS = 2_000
/** How long a stop waits for letters that are on their way. */
const STOP_MS = 5_000
/** From 8 s after the first attempt. */
const BACKOFF = { baseMs: 4_000, capMs: 300_000 }

export interface CourierOptions {
  readonly database: Database
  readonly transport: MailTransport
  readonly sealer: Sealer
  readonly consoleUrl: string
  readonly log: Log
  readonly registry: Registry
  readonly attemptMs?: number
  readonly pollMs?: number
  readonly random?: () => number
}

const metricsOf = (registry: Registry, database: Database) => {
  const labels = { registers: [registry] }
  new Gauge({
    name: 'svc_mail_waiting',
    help: 'Letters that wait to be sent, by all replicas together',
    ...labels,
    async collect() {
      const { n } = await waitingLetters(database).catch(() => ({ n: Number.NaN }))
      this.set(n)
    },
  })
  return {
    attempts: new Counter({
      name: 'svc_mail_attempts_total',
      help: 'Attempts to send a letter, and how they ended',
      labelNames: ['kind', 'outcome'],
      ...labels,
    }),
    delay: new Histogram({
      name: 'svc_mail_delay_seconds',
      help: 'From when a letter was written until it was taken',
      buckets: [0.5, 1, 5, 30, 120, 600, 3600],
      ...labels,
    }),
  }
}

export class Courier {
  readonly #options: CourierOptions
  readonly #log: Log
  readonly #metrics: ReturnType<typeof metricsOf>
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()
  #poll: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #lookAgain = false

  constructor(options: CourierOptions) {
    this.#options = options
    this.#log = options.log.child({ part: 'mail' })
    this.#metrics = metricsOf(options.registry, options.database)
  }

  start(): void {
    this.#poll = setInterval(() => this.wake(), this.#options.pollMs ?? POLL_MS).unref()
    this.wake()
  }

  /** After a letter was committed: a hint. Never throws. */
  wake(): void {
    if (this.#stopping.signal.aborted) return
    this.#lookAgain = true
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
      if (this.#lookAgain) this.wake()
    })
  }

  /** Takes nothing more; waits a little for what is on its way, then ends it: it is tried again by others. */
  async stop(): Promise<void> {
    clearInterval(this.#poll)
    this.#lookAgain = false
    const timer = setTimeout(() => this.#stopping.abort(), STOP_MS)
    await this.#looking
    this.#lookAgain = false
    await Promise.all(this.#running)
    clearTimeout(timer)
    this.#stopping.abort()
  }

  async #look(): Promise<void> {
    const { database } = this.#options
    while (this.#lookAgain) {
      this.#lookAgain = false
      const room = AT_ONCE - this.#running.size
      if (room <= 0) return // each that ends looks again
      try {
        const lease = randomUUID()
        const [expired, letters] = await database.transaction(async sql => [
          await giveUpExpiredLetters(sql),
          await leaseLetters(sql, lease, LEASE_SECONDS, room),
        ])
        for (const letter of expired)
          this.#gaveUp(letter.kind, letter.id, letter.attempts, letter.lastError ?? 'expired')
        for (const letter of letters) this.#begin(letter, lease)
      } catch (error) {
        this.#log.warn({ err: error }, 'Cannot look for letters; the next look will')
      }
    }
  }

  #begin(letter: LeasedLetter, lease: string): void {
    const delivery = this.#deliver(letter, lease)
      .catch((error: unknown) =>
        // The lease runs out, and then it is tried again.
        this.#log.warn({ err: error, letter_id: letter.id }, 'What became of a letter could not be kept'),
      )
      .finally(() => {
        this.#running.delete(delivery)
        this.wake()
      })
    this.#running.add(delivery)
  }

  async #deliver(letter: LeasedLetter, lease: string): Promise<void> {
    const { database, sealer } = this.#options
    const { id, kind, attempts } = letter
    const failure = await this.#attempt(letter, sealer)
    if (failure === undefined) {
      await database.transaction(sql => settleLetter(sql, id, lease, 'sent'))
      this.#metrics.attempts.inc({ kind, outcome: 'sent' })
      this.#metrics.delay.observe((Date.now() - letter.createdAt.getTime()) / 1000)
      this.#log.info({ letter_id: id, kind, attempts }, 'Sent a letter')
    } else if (failure.permanent) {
      await database.transaction(sql => settleLetter(sql, id, lease, 'given_up', failure.message))
      this.#gaveUp(kind, id, attempts, failure.message)
    } else {
      const seconds = steadyBackoffMs(BACKOFF, attempts, this.#options.random ?? Math.random) / 1000
      await database.transaction(sql => postponeLetter(sql, id, lease, seconds, failure.message))
      this.#metrics.attempts.inc({ kind, outcome: 'failed' })
      this.#log.warn(
        { letter_id: id, kind, attempts, why: failure.message },
        'A letter was not taken; it is tried again',
      )
    }
  }

  /** Undefined: somebody else answers for it now. */
  async #attempt(letter: LeasedLetter, sealer: Sealer): Promise<MailError | undefined> {
    const { transport, consoleUrl, attemptMs = ATTEMPT_MS } = this.#options
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(attemptMs)])
    try {
      const secret = openSecret(sealer, letter.id, letter.sealedSecret)
      const { subject, text, html } = writeLetter(letter.kind, { ...letter.parameters, ...secret }, consoleUrl)
      await transport.send({ id: letter.id, to: letter.recipient, subject, text, html }, signal)
      return undefined
    } catch (error) {
      if (error instanceof MailError) return error
      // Not its message: it could hold anything.
      return new MailError(`The letter could not be written: ${error instanceof Error ? error.name : 'error'}`)
    }
  }

  #gaveUp(kind: string, id: string, attempts: number, why: string): void {
    this.#metrics.attempts.inc({ kind, outcome: 'given_up' })
    this.#log.error({ letter_id: id, kind, attempts, why }, 'A letter was given up')
  }
}
