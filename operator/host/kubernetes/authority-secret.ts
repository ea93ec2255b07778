/** Keeps the authority in a Secret of the operator's namespace: made at the first start, looked at again every hour. */
import { LABELS, OPERATOR } from '../../../crds/metadata.ts'
import type { KubernetesObjects } from '../../../runtime/kubernetes/kubernetes-object.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import type { Identity } from '../../../runtime/tls/certificate.ts'
import { type AuthorityState, advanceAuthority, isGoodClient, issueClient, newAuthority, trusted } from './authority.ts'
import { type Secret, secrets } from './object-types.ts'

export const AUTHORITY_SECRET = 'svc-ca'
const LOOK_AGAIN_MS = 3_600_000

/** The authority at a moment, with the operator's own certificate. */
export interface Signing {
  readonly state: AuthorityState
  /** PEM of all that are trusted. */
  readonly authorities: string
  readonly client: Identity
}

export class AuthoritySecret {
  readonly #objects: KubernetesObjects
  readonly #key: { readonly namespace: string; readonly name: string }
  readonly #now: () => Date
  #signing: Promise<Signing> | undefined
  #lookAgainAt = 0

  constructor(objects: KubernetesObjects, namespace: string, now: () => Date) {
    this.#objects = objects
    this.#key = { namespace, name: AUTHORITY_SECRET }
    this.#now = now
  }

  /** The authority in force. @throws StoreError when it cannot be read; Error when it is there and cannot be used */
  get(): Promise<Signing> {
    const now = this.#now().getTime()
    if (this.#signing === undefined || now >= this.#lookAgainAt) {
      const before = this.#signing
      this.#lookAgainAt = now + LOOK_AGAIN_MS * (0.9 + Math.random() / 5)
      this.#signing = this.#load(before).catch((error: unknown) => {
        this.#lookAgainAt = 0
        throw error
      })
    }
    return this.#signing
  }

  /** Looks again at the next `get`. */
  forget(): void {
    this.#lookAgainAt = 0
  }

  async #load(before: Promise<Signing> | undefined): Promise<Signing> {
    const kept = await before?.catch(() => undefined)
    const state = await this.#state()
    const now = this.#now()
    const client = kept !== undefined && isGoodClient(state, kept.client, now) ? kept.client : issueClient(state, now)
    return { state, authorities: trusted(state), client }
  }

  async #state(): Promise<AuthorityState> {
    for (let attempt = 0; ; attempt++) {
      const secret = await this.#objects.get(secrets, this.#key)
      try {
        if (secret === undefined) return await this.#make()
        const state = stateIn(secret)
        const next = advanceAuthority(state, this.#now())
        if (next === state) return state
        // Bound to what was read: of two operators one advances, and the other reads again.
        await this.#objects.merge(secrets, this.#key, {
          metadata: { resourceVersion: secret.metadata?.resourceVersion },
          data: dataOf(next),
        })
        return next
      } catch (error) {
        if (!isStoreError(error, 'Conflict', 'AlreadyExists') || attempt >= 5) throw error
      }
    }
  }

  async #make(): Promise<AuthorityState> {
    const state = newAuthority(this.#now())
    const { namespace, name } = this.#key
    await this.#objects.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name, labels: { [LABELS.managedBy]: OPERATOR } },
      type: 'Opaque',
      data: withoutNulls(dataOf(state)),
    })
    return state
  }
}

/** In the form of a merge patch: what is no more is null where it may have been. */
const dataOf = (state: AuthorityState): Record<string, string | null> => {
  const entries: Record<string, string | undefined> = {
    'ca.crt': state.signing.certificate,
    'ca.key': state.signing.key,
    'next.crt': state.successor?.certificate,
    'next.key': state.successor?.key,
    'next.from': state.successor?.from,
    'former.crt': state.former?.certificate,
    'former.until': state.former?.until,
  }
  return Object.fromEntries(
    Object.entries(entries).map(([name, text]) => [name, text === undefined ? null : btoa(text)]),
  )
}

const stateIn = (secret: Secret): AuthorityState => {
  const read = (name: string): string | undefined => {
    const text = secret.data?.[name]
    return text === undefined || text === '' ? undefined : atob(text)
  }
  const [certificate, key] = [read('ca.crt'), read('ca.key')]
  if (certificate === undefined || key === undefined)
    throw new Error(
      `Cannot use Secret ${AUTHORITY_SECRET}: it holds no ca.crt and ca.key; restore it, a new authority would lock every client out`,
    )
  const [nextCertificate, nextKey, from] = [read('next.crt'), read('next.key'), read('next.from')]
  const [formerCertificate, until] = [read('former.crt'), read('former.until')]
  return {
    signing: { certificate, key },
    ...(nextCertificate === undefined || nextKey === undefined || from === undefined
      ? {}
      : { successor: { certificate: nextCertificate, key: nextKey, from } }),
    ...(formerCertificate === undefined || until === undefined
      ? {}
      : { former: { certificate: formerCertificate, until } }),
  }
}

const withoutNulls = (data: Record<string, string | null>): Record<string, string> =>
  Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string] => entry[1] !== null))
