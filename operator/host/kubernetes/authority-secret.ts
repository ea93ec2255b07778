/**
 * Keeps the authority in a Secret of the operator's namespace: made at the first start, looked at again twice a minute. Whoever
 * runs remembers it, and writes it back where hands took it away. Once there are environments, a new one is made only when an
 * admin asks for it: their servers and clients trust the old one alone.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ANNOTATIONS, LABELS, OPERATOR } from '../../../crds/metadata.ts'
import type { KubernetesObjects } from '../../../runtime/kubernetes/kubernetes-object.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import type { Identity } from '../../../runtime/tls/certificate.ts'
import { ConditionError } from '../host.ts'
import {
  type AuthorityState,
  acceptedAuthority,
  advanceAuthority,
  continues,
  isGoodClient,
  issueClient,
  newAuthority,
  trusted,
} from './authority.ts'
import { dataOf, stateIn, withoutNulls } from './authority-data.ts'
import { type Secret, secrets } from './object-types.ts'

export const AUTHORITY_SECRET = 'svc-ca'
const LOOK_AGAIN_MS = 30_000
/** Where it could not be read or may not be made. */
const REFUSED_AGAIN_MS = 2_000

/** The authority at a moment, with the operator's own certificate. */
export interface Signing {
  readonly state: AuthorityState
  /** PEM of all that are trusted. */
  readonly authorities: string
  readonly client: Identity
}

export interface AuthoritySecretOptions {
  readonly objects: KubernetesObjects
  /** The operator's. */
  readonly namespace: string
  /** Whether there are environments already, so that nobody may think of this as a first start. */
  readonly isInUse: () => Promise<boolean>
  readonly log: Log
  readonly now: () => Date
}

export class AuthoritySecret {
  readonly #options: AuthoritySecretOptions
  readonly #key: { readonly namespace: string; readonly name: string }
  /** As it was last seen whole, whatever became of the Secret since. */
  #known: Signing | undefined
  #looking: Promise<Signing> | undefined
  #lookAgainAt = 0
  #problem: string | undefined

  constructor(options: AuthoritySecretOptions) {
    this.#options = options
    this.#key = { namespace: options.namespace, name: AUTHORITY_SECRET }
  }

  /**
   * The authority in force: the last one that was seen where the Secret cannot be read just now.
   * @throws ConditionError `AuthorityMissing`; StoreError when it never was read
   */
  get(): Promise<Signing> {
    const now = this.#options.now().getTime()
    if (this.#looking === undefined || now >= this.#lookAgainAt) {
      this.#lookAgainAt = now + LOOK_AGAIN_MS * (0.9 + Math.random() / 5)
      this.#looking = this.#look()
      this.#looking.catch(() => (this.#lookAgainAt = now + REFUSED_AGAIN_MS))
    }
    return this.#looking
  }

  /** Why there is none; undefined: there is one. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Looks at the next `get`, whatever the last look met: this process may do now what it might not do before. */
  lookAnew(): void {
    this.#lookAgainAt = 0
  }

  /** Looks again and again, so that every replica remembers what one of them may have to write back. Never throws. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.get().catch(() => undefined)
      const restMs = Math.max(this.#lookAgainAt - this.#options.now().getTime(), 100)
      await sleep(restMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #look(): Promise<Signing> {
    const kept = this.#known
    try {
      const state = await this.#state()
      const now = this.#options.now()
      const client = kept !== undefined && isGoodClient(state, kept.client, now) ? kept.client : issueClient(state, now)
      if (this.#problem !== undefined) this.#options.log.info({}, 'The authority of environments is there')
      this.#problem = undefined
      return (this.#known = { state, authorities: trusted(state), client })
    } catch (error) {
      if (kept !== undefined) {
        this.#options.log.warn({ err: error }, 'The authority cannot be looked at: going on with the one that is known')
        return kept
      }
      // Whoever only stands by may not make it: no trouble of this process's.
      if (error instanceof ConditionError) {
        if (this.#problem === undefined) this.#options.log.error({ err: error }, 'There is no authority')
        this.#problem = error.message
      }
      throw error
    }
  }

  async #state(): Promise<AuthorityState> {
    for (let attempt = 0; ; attempt++) {
      try {
        const secret = await this.#options.objects.get(secrets, this.#key)
        const kept = stateIn(secret)
        const next = await this.#next(secret, kept)
        if (next !== kept || asksForNew(secret)) await this.#write(secret, next)
        // Not before it was written: what is known is in force.
        return next
      } catch (error) {
        if (!isStoreError(error, 'Conflict', 'AlreadyExists') || attempt >= 5) throw error
      }
    }
  }

  async #next(secret: Secret | undefined, kept: AuthorityState | undefined): Promise<AuthorityState> {
    const { now, log, isInUse } = this.#options
    const known = this.#known?.state
    if (asksForNew(secret)) {
      log.warn({}, 'An admin asks for a new authority: every server is restarted with it')
      return acceptedAuthority(now())
    }
    if (kept !== undefined && (known === undefined || continues(known, kept))) return advanceAuthority(kept, now())
    if (known !== undefined) {
      log.error(
        { secret: AUTHORITY_SECRET },
        'The Secret of the authority in use was deleted or changed: putting it back',
      )
      return known
    }
    if (secret === undefined && !(await isInUse())) return newAuthority(now())
    throw new ConditionError('CredentialsReady', 'AuthorityMissing', MISSING(this.#key.namespace))
  }

  /** Bound to what was read: of two operators one writes, and the other reads again. */
  async #write(secret: Secret | undefined, state: AuthorityState): Promise<void> {
    const { objects } = this.#options
    const data = dataOf(state)
    if (secret === undefined)
      await objects.create(secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...this.#key, labels: { [LABELS.managedBy]: OPERATOR } },
        type: 'Opaque',
        data: withoutNulls(data),
      })
    else
      await objects.merge(secrets, this.#key, {
        metadata: {
          resourceVersion: secret.metadata?.resourceVersion,
          annotations: { [ANNOTATIONS.newAuthority]: null },
        },
        data,
      })
  }
}

const asksForNew = (secret: Secret | undefined): boolean =>
  secret?.metadata?.annotations?.[ANNOTATIONS.newAuthority] === 'accepted'

const MISSING = (namespace: string): string =>
  `Secret ${namespace}/${AUTHORITY_SECRET}, the authority that every environment trusts, is gone or holds no ca.crt and ca.key. ` +
  'Databases run on. Restore it from the backup; or have a new one made, with a restart of every server, by ' +
  `annotating it ${ANNOTATIONS.newAuthority}=accepted`
