import type { OwnerReference } from '../../lib/model/resource.ts'
import {
  CREDENTIAL_ROLES,
  type CredentialOwner,
  type CredentialSet,
  type Credentials,
  type DatabaseCredential,
} from '../credentials/credentials.ts'
import { sameJson } from '../store/merge-patch.ts'
import { isStoreError, StoreError } from '../store/store-error.ts'
import { type Secret, secrets } from './core-kinds.ts'
import type { KubernetesObjects } from './kubernetes-object.ts'
import { settleObject } from './settle-object.ts'

/** How the Secrets of an owner look; the names carry enough of the uid to be its own. */
export interface SecretLayout {
  /** The label whose value is the owner's uid. */
  readonly uidLabel: string
  names(owner: CredentialOwner): { readonly app: string; readonly ops: string }
  metadata(owner: CredentialOwner): {
    readonly labels: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly OwnerReference[]
  }
  /** What clients find in the `app` Secret. */
  app(owner: CredentialOwner, credential: DatabaseCredential): Readonly<Record<string, string>>
}

/** Holds the whole set in the `ops` Secret: one object, so that both roles change together. */
const SET = 'credentials.json'

const PUBLISH_ATTEMPTS = 5

const encoded = (text: string): string => Buffer.from(text, 'utf8').toString('base64')

const setIn = (secret: Secret | undefined): CredentialSet | undefined => {
  try {
    const set = JSON.parse(Buffer.from(secret?.data?.[SET] ?? '', 'base64').toString('utf8')) as CredentialSet
    // Throws where a role is missing.
    return CREDENTIAL_ROLES.every(role => set[role].password !== '') ? set : undefined
  } catch {
    // Somebody's hand: lost, as if the Secret were gone.
    return undefined
  }
}

/**
 * Credentials in two Secrets beside the environment. The `ops` Secret is what is in force; the `app` Secret shows the tenant's
 * sign-in to programs that mount it, and is never read. They are read by name, never listed or watched.
 */
export class KubernetesCredentials implements Credentials {
  readonly #objects: KubernetesObjects
  readonly #layout: SecretLayout
  readonly #beside: () => Promise<Readonly<Record<string, string>>>

  /** @param beside what clients find in the `app` Secret that is no sign-in and may change: whom they may trust */
  constructor(
    objects: KubernetesObjects,
    layout: SecretLayout,
    beside: () => Promise<Readonly<Record<string, string>>> = async () => ({}),
  ) {
    this.#objects = objects
    this.#layout = layout
    this.#beside = beside
  }

  async read(owner: CredentialOwner): Promise<CredentialSet | undefined> {
    const secret = await this.#get(owner, 'ops')
    return this.#isOwn(owner, secret) ? setIn(secret) : undefined
  }

  /** Writes nothing when both Secrets say so already: a repeated write repairs the `app` Secret. */
  async write(
    owner: CredentialOwner,
    credentials: CredentialSet,
    { first = false }: { readonly first?: boolean } = {},
  ): Promise<void> {
    const live = first ? undefined : await this.#get(owner, 'ops')
    if (live === undefined && (await this.#make(owner, credentials))) return
    await this.#settle(owner, 'ops', { [SET]: JSON.stringify(credentials) }, live ?? (await this.#get(owner, 'ops')))
    await this.#publish(owner, credentials)
  }

  /**
   * Makes both Secrets where neither is. Each is created, not applied: whoever writes later finds it there, and has the last word.
   * @returns whether they show these credentials now; false: somebody else made one of them
   */
  async #make(owner: CredentialOwner, credentials: CredentialSet): Promise<boolean> {
    try {
      await this.#objects.create(secrets, this.#wish(owner, 'ops', { [SET]: JSON.stringify(credentials) }))
      await this.#objects.create(secrets, this.#wish(owner, 'app', await this.#shown(owner, credentials.app)))
      return true
    } catch (error) {
      if (isStoreError(error, 'AlreadyExists')) return false
      throw error
    }
  }

  async isPublished(owner: CredentialOwner, credentials: CredentialSet): Promise<boolean> {
    const secret = await this.#get(owner, 'app')
    const expected = Object.entries(await this.#shown(owner, credentials.app))
    return this.#isOwn(owner, secret) && expected.every(([key, value]) => secret?.data?.[key] === encoded(value))
  }

  async delete(owner: CredentialOwner): Promise<void> {
    // What is in force goes last: as long as it is there, this can be repeated by whoever finds it.
    for (const role of ['app', 'ops'] as const) {
      const secret = await this.#get(owner, role)
      if (secret?.metadata?.uid === undefined || !this.#isOwn(owner, secret)) continue
      await this.#objects.delete(secrets, this.#key(owner, role), { uid: secret.metadata.uid })
    }
  }

  /** Shows clients what is in force, also when somebody else wrote at the same time: whoever looks last is right. */
  async #publish(owner: CredentialOwner, written: CredentialSet): Promise<void> {
    let shown = written
    for (let attempt = 0; attempt < PUBLISH_ATTEMPTS; attempt++) {
      await this.#settle(owner, 'app', await this.#shown(owner, shown.app), await this.#get(owner, 'app'))
      const inForce = setIn(await this.#get(owner, 'ops'))
      if (inForce === undefined || sameJson(inForce.app, shown.app)) return
      shown = inForce
    }
    throw new StoreError('Conflict', 'The credentials were written by several at once')
  }

  async #shown(owner: CredentialOwner, credential: DatabaseCredential): Promise<Readonly<Record<string, string>>> {
    return { ...this.#layout.app(owner, credential), ...(await this.#beside()) }
  }

  /** @param live read right before: another one may have written since whatever was read earlier */
  async #settle(
    owner: CredentialOwner,
    role: 'app' | 'ops',
    content: Readonly<Record<string, string>>,
    live: Secret | undefined,
  ): Promise<void> {
    if (live !== undefined && !this.#isOwn(owner, live))
      throw new StoreError('Conflict', `Secret "${live.metadata?.name ?? ''}" belongs to another environment`)
    await settleObject(this.#wish(owner, role, content), live, secret => this.#objects.apply(secrets, secret))
  }

  #wish(owner: CredentialOwner, role: 'app' | 'ops', content: Readonly<Record<string, string>>): Secret {
    const data = Object.fromEntries(Object.entries(content).map(([key, value]) => [key, encoded(value)]))
    const metadata = { ...this.#key(owner, role), ...this.#layout.metadata(owner) }
    return { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }
  }

  async #get(owner: CredentialOwner, role: 'app' | 'ops'): Promise<Secret | undefined> {
    return this.#objects.get(secrets, this.#key(owner, role))
  }

  #key(owner: CredentialOwner, role: 'app' | 'ops'): { namespace: string; name: string } {
    return { namespace: owner.namespace, name: this.#layout.names(owner)[role] }
  }

  /** A name holds part of a uid only. A label that somebody took away says nothing. */
  #isOwn(owner: CredentialOwner, secret: Secret | undefined): boolean {
    return (secret?.metadata?.labels?.[this.#layout.uidLabel] ?? owner.uid) === owner.uid
  }
}
