/** Reads everything that a decision needs, once, into one frozen value. Writes nothing. */
import type { Environment } from '../../crds/environment.ts'
import type { CredentialOwner, CredentialSet, Credentials } from '../../runtime/credentials/credentials.ts'
import type { Host, InstanceRef, SignIn } from '../host/host.ts'
import { identityMatches } from './checks/identity-matches.ts'
import { areSettingsApplied } from './checks/settings-applied.ts'
import { concernOf } from './decide.ts'
import { decideRetention } from './decide-retention.ts'
import type { DefaultFigures } from './defaults.ts'
import { type Wanted, wantedOf } from './defaults.ts'
import type { Limits } from './limits.ts'
import { type NamespaceFacts, type Namespaces, NOWHERE } from './namespaces.ts'
import { stopsNow } from './next-phase.ts'
import type { Observed } from './observed.ts'
import { type Recollection, withObservation, withSignIn } from './recollection.ts'
import { isRotationDue } from './rotation.ts'

/** What is read from. */
export interface Sources {
  readonly host: Host
  readonly credentials: Credentials
  readonly namespaces: Namespaces | undefined
}

/** Which instance an environment's is. */
export const instanceRef = ({ metadata, spec }: Environment): InstanceRef => ({
  key: { namespace: metadata.namespace, name: metadata.name },
  uid: metadata.uid,
  path: { organizationId: spec.organizationId, projectId: spec.projectId, environmentId: spec.environmentId },
})

/** Whose credentials an environment's are. */
export const credentialOwner = ({ metadata }: Environment): CredentialOwner => ({
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
})

/** What was seen, and beside it what no decision may hold. */
export interface Seen {
  readonly observed: Observed
  /** The passwords as they were read for it, or a moment before; undefined: they were not, or there are none. */
  readonly kept: CredentialSet | undefined
}

export const observe = async (
  environment: Environment,
  recollection: Recollection,
  sources: Sources,
  settings: { readonly defaults: DefaultFigures; readonly limits: Limits; readonly nowMs: number },
  /** The passwords, where they were read a moment ago. */
  known?: CredentialSet,
): Promise<Seen> => {
  const { host, credentials, namespaces } = sources
  const wanted = wantedOf(environment, settings.defaults)
  const namespace = await namespaceOf(environment, wanted, namespaces)
  const seen: Observed = {
    environment,
    wanted,
    namespace,
    instance: undefined,
    credentials: 'not_read',
    keptRotation: undefined,
    signIn: undefined,
    recollection,
  }
  if (concernOf(seen, settings.nowMs, settings.limits) !== 'life') return unread(seen)

  const instance = await host.observe(instanceRef(environment))
  const recalled = withObservation(recollection, environment, instance)
  // A sign-in would hold up what comes before it, and prove what is about to change: it is proven after that.
  const actsFirst =
    decideRetention({ environment, wanted, instance }) !== undefined ||
    (environment.status?.phase === 'ready' && !areSettingsApplied({ environment, wanted, recollection: recalled }))
  if (actsFirst || !needsProof(environment, wanted.suspended, recalled, settings))
    return unread({ ...seen, instance, recollection: recalled })

  // Something that starts is looked at often.
  const running = instance.state === 'running'
  if (!running && recalled.credentialsKept)
    return unread({ ...seen, instance, credentials: 'present', recollection: recalled })

  const owner = credentialOwner(environment)
  const kept = known ?? (await credentials.read(owner))
  const applied = recalled.credentialsApplied || (environment.status?.everReady === true && kept?.next === undefined)
  // Before its server has taken any, nobody signs in with them.
  const shows = running && (applied || environment.status?.everReady === true)
  const published = kept === undefined || !shows || (await credentials.isPublished(owner, kept))
  const signIn: SignIn | undefined =
    kept !== undefined && applied && running
      ? await host.signIn(instanceRef(environment), kept.next ?? kept)
      : undefined
  const observed = Object.freeze({
    ...seen,
    instance,
    credentials: standing(kept, published),
    keptRotation: kept?.rotation,
    signIn,
    recollection: withSignIn({ ...recalled, credentialsKept: kept !== undefined }, signIn, settings.nowMs),
  })
  return { observed, kept }
}

const unread = (observed: Observed): Seen => ({ observed: Object.freeze(observed), kept: undefined })

const standing = (kept: CredentialSet | undefined, published: boolean): Observed['credentials'] => {
  if (kept === undefined) return 'absent'
  if (!published) return 'unpublished'
  return kept.next === undefined ? 'present' : 'next'
}

/** A namespace may be labelled a moment before its first Environment is made: before a refusal it is looked at afresh. */
const namespaceOf = async (
  environment: Environment,
  wanted: Wanted,
  namespaces: Namespaces | undefined,
): Promise<NamespaceFacts | undefined> => {
  if (namespaces === undefined) return undefined
  const { namespace: name } = environment.metadata
  const namespace = (await namespaces.look(name)) ?? NOWHERE
  if (identityMatches({ environment, wanted, namespace }) === undefined) return namespace
  return (await namespaces.look(name, { fresh: true })) ?? NOWHERE
}

/** A ready environment is asked now and then, and while its passwords change; every other one that should run, each time. */
const needsProof = (
  environment: Environment,
  wantedSuspended: boolean,
  { provenAtMs }: Recollection,
  { limits, nowMs }: { readonly limits: Limits; readonly nowMs: number },
): boolean => {
  const phase = environment.status?.phase ?? 'requested'
  if (stopsNow(phase, wantedSuspended)) return false
  if (phase !== 'ready' || provenAtMs === undefined || isRotationDue(environment)) return true
  const ageMs = nowMs - provenAtMs
  return ageMs < 0 || ageMs >= limits.proofEveryMs
}
