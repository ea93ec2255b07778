/**
 * The host on a cluster: each environment is a StatefulSet of one pod, with its claim, its Service and a Secret. Their
 * annotations are its memory, so that any operator takes over where another one ended.
 */

import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ANNOTATIONS, LABELS } from '../../../crds/metadata.ts'
import { type DeletionPolicy, defaultDeletionPolicy } from '../../../lib/model/environment.ts'
import type { ResourceKey } from '../../../lib/model/resource.ts'
import { Controller } from '../../../runtime/controller/controller.ts'
import type { CredentialSet } from '../../../runtime/credentials/credentials.ts'
import type { KubernetesObject } from '../../../runtime/kubernetes/kubernetes-object.ts'
import type { Observed } from '../../../runtime/kubernetes/object-source.ts'
import { isStoreError } from '../../../runtime/store/store-error.ts'
import { applyPasswords } from '../apply-roles.ts'
import type { Disk } from '../disk.ts'
import {
  ConditionError,
  type Destroyed,
  type Host,
  type InstanceRef,
  type InstanceSpec,
  type ObservedInstance,
  type SignIn,
} from '../host.ts'
import { toldRefusal } from '../refused-write.ts'
import { signInOverTcp } from '../sign-in.ts'
import { isInitialized } from './build-claim.ts'
import { type ClusterWorld, certainObjectsOf, keyIn, objectsOf } from './cluster-world.ts'
import { destroyInstance } from './destroy-instance.ts'
import { growClaim } from './ensure-claim.ts'
import { ensureInstance, ensureStatefulSet } from './ensure-instance.ts'
import { Projects } from './ensure-project.ts'
import { jittered } from './jittered.ts'
import { isBackingOff } from './judge-pod.ts'
import { FILES_EVERY_MS, failureOf, keepInstance } from './keep-instance.ts'
import { tellClaim } from './keep-volume.ts'
import { KnownInstance } from './known-instance.ts'
import { observationOf } from './observation.ts'
import { readFilesSecret } from './served-data.ts'
import { doorOf, superuserAddress } from './server-session.ts'
import { forgetStop, witnessStop } from './stop-instance.ts'
import { type PlacedSpec, parseWanted } from './wanted.ts'
import { type WatchedCluster, type WatchOptions, watchCluster } from './watch-cluster.ts'
import { type WatchedProjects, watchProjects } from './watch-projects.ts'

export interface KubernetesHost extends Host {
  /** Begins to follow the cluster; resolves once all that is there was seen. Writes nothing. */
  watch(): Promise<void>
  /** Begins to keep the instances as they were asked for; only one operator at a time may. */
  keep(): void
  /** Sees to what a project's namespace needs before anything else is read or written there; `afresh` whatever is known. */
  prepare(namespace: string, options?: { readonly afresh?: boolean }): Promise<void>
  /** What projects' namespaces need, as it is seen; and how it is put right. */
  readonly projects: Pick<WatchedProjects, 'isSound' | 'onChange'> & Pick<Projects, 'repair'>
  health(): ReturnType<WatchedCluster['health']>
  /** The room on volumes, of those whose servers were asked. */
  disks(): readonly { readonly key: ResourceKey; readonly disk: Disk }[]
  /** Of all instances, and of environments that are gone. */
  readonly claims: WatchedCluster['claims']
  /** PEM of the authorities that clients may trust. */
  caCertificate(): Promise<string>
  /** What keeps it from working on any environment, whatever their own state; undefined: nothing. */
  problem(): string | undefined
  /** Ends everything; databases run on. */
  stopAll(): Promise<void>
}

/** How often something that the cluster refused is tried again. */
const REFUSED_MS = 10_000

/** A host on a cluster; it does nothing until `watch`. */
export const openKubernetesHost = (options: WatchOptions): KubernetesHost => new OpenKubernetesHost(options)

class OpenKubernetesHost implements KubernetesHost {
  readonly #cluster: WatchedCluster
  readonly #world: ClusterWorld
  readonly #projects: Projects
  readonly #seenProjects: WatchedProjects
  readonly #controller: Controller
  readonly #instances = new Map<string, KnownInstance>()
  readonly #listeners = new Set<(key: ResourceKey) => void>()

  constructor(options: WatchOptions) {
    this.#cluster = watchCluster(options, (object, namespace) => this.#happened(object, namespace))
    this.#world = this.#cluster.world
    this.#projects = new Projects(this.#world)
    this.#seenProjects = watchProjects(options)
    this.#controller = new Controller({
      name: 'instance',
      reconcile: async key => ({ requeueAfterMs: await this.#keep(key) }),
      log: options.log,
      metrics: options.metrics,
    })
  }

  // ---- the port

  async observe(ref: InstanceRef): Promise<ObservedInstance> {
    const instance = this.#peek(ref)
    const { names } = instance
    const objects = await certainObjectsOf(this.#world, names)
    const { authorities } = await this.#world.authority.get()
    return this.#observation(instance, objects, authorities)
  }

  start(ref: InstanceRef, spec: InstanceSpec): Promise<void> {
    const instance = this.#instance(ref)
    return instance.turns.take(async () => {
      instance.destroying = false
      const { image } = this.#world.settings
      const kind = spec.kind ?? 'preview'
      const deletionPolicy = spec.deletionPolicy ?? defaultDeletionPolicy(kind)
      const placed = { ...spec, image: spec.image ?? image, kind }
      await this.#retrying(instance, () => this.#bringUp(instance, placed, deletionPolicy))
      this.#enqueue(instance)
    })
  }

  stop(ref: InstanceRef): Promise<void> {
    const instance = this.#instance(ref)
    return instance.turns.take(() => this.#retrying(instance, () => this.#bringDown(instance)))
  }

  setDeletionPolicy(ref: InstanceRef, policy: DeletionPolicy): Promise<void> {
    const instance = this.#instance(ref)
    return instance.turns.take(async () => {
      await this.#retrying(instance, () => tellClaim(this.#world, instance.names, policy))
      this.#enqueue(instance)
    })
  }

  destroy(ref: InstanceRef, policy: DeletionPolicy): Promise<Destroyed> {
    const instance = this.#instance(ref)
    instance.destroying = true
    return instance.turns.take(async () => {
      const destroyed = await this.#retrying(instance, () => destroyInstance(this.#world, instance.names, policy))
      if (destroyed.done) this.#instances.delete(ref.uid)
      return destroyed
    })
  }

  async applyCredentials(ref: InstanceRef, credentials: CredentialSet): Promise<void> {
    const { names } = this.#instance(ref)
    const signing = await this.#world.authority.get()
    const door = doorOf(names, objectsOf(this.#world, names).service, signing.authorities)
    if (door === undefined)
      throw new ConditionError('DatabaseReachable', 'NoAddress', 'The Service of the environment has no address yet')
    await applyPasswords(superuserAddress(door, signing), credentials, this.#world.mustLead)
  }

  async signIn(ref: InstanceRef, credentials: CredentialSet): Promise<SignIn> {
    const { names } = this.#peek(ref)
    const { service, pod } = objectsOf(this.#world, names)
    const { authorities } = await this.#world.authority.get()
    const door = doorOf(names, service, authorities)
    if (door === undefined || pod === undefined) return { result: 'unreachable', message: 'Nothing runs' }
    return signInOverTcp(door, credentials.app)
  }

  onChange(listener: (key: ResourceKey) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  // ---- of a cluster

  get claims(): WatchedCluster['claims'] {
    return this.#cluster.claims
  }

  get projects(): KubernetesHost['projects'] {
    const seen = this.#seenProjects
    return {
      isSound: namespace => seen.isSound(namespace),
      onChange: listener => seen.onChange(listener),
      repair: namespace => this.#projects.repair(namespace),
    }
  }

  async watch(): Promise<void> {
    await Promise.all([this.#cluster.start(), this.#seenProjects.start()])
  }

  keep(): void {
    // Whoever stood by was refused to make it.
    this.#world.authority.lookAnew()
    this.#controller.start()
  }

  prepare(namespace: string, { afresh = false }: { readonly afresh?: boolean } = {}): Promise<void> {
    if (afresh) this.#projects.forget(namespace)
    return this.#projects.ensure(namespace)
  }

  health(): ReturnType<WatchedCluster['health']> {
    return [...this.#cluster.health(), ...this.#seenProjects.health()]
  }

  disks(): ReturnType<KubernetesHost['disks']> {
    return [...this.#instances.values()].flatMap(({ ref: { key }, disk }) =>
      disk === undefined ? [] : [{ key, disk }],
    )
  }

  async caCertificate(): Promise<string> {
    return (await this.#world.authority.get()).authorities
  }

  problem(): string | undefined {
    return this.#world.authority.problem
  }

  async stopAll(): Promise<void> {
    await this.#controller.stop()
    await Promise.all([this.#cluster.stop(), this.#seenProjects.stop()])
  }

  // ---- instances

  /** What is known, without remembering that it was asked for. */
  #peek(ref: InstanceRef): KnownInstance {
    return this.#instances.get(ref.uid) ?? new KnownInstance(ref, this.#world.settings.managedBy)
  }

  #instance(ref: InstanceRef): KnownInstance {
    let instance = this.#instances.get(ref.uid)
    if (instance === undefined)
      this.#instances.set(ref.uid, (instance = new KnownInstance(ref, this.#world.settings.managedBy)))
    return instance
  }

  async #bringUp(instance: KnownInstance, spec: PlacedSpec, deletionPolicy: DeletionPolicy): Promise<void> {
    const { names } = instance
    const { statefulSet, pod: runs, claim: before } = await certainObjectsOf(this.#world, names)
    const first = !instance.tried && statefulSet === undefined && runs === undefined && before === undefined
    instance.tried = true
    await this.#projects.ensure(names.namespace)
    const remains = { claim: before, stands: statefulSet !== undefined }
    // Nobody has read the files of what is not there yet; and a claim that says so needs no other witness.
    const read = first
      ? { secret: undefined }
      : isInitialized(before)
        ? undefined
        : { secret: await readFilesSecret(this.#world, names) }
    const { claim, files, served } = await ensureInstance(
      this.#world,
      names,
      { running: true, spec },
      { deletionPolicy, remains, read },
    )
    instance.served = served
    if (served && statefulSet === undefined)
      this.#world.repaired(names, { kind: 'StatefulSet', name: names.name, how: 'made' })
    if (files.digest !== instance.files?.digest) instance.serverDueAt = 0
    instance.files = files
    instance.filesDueAt = this.#world.now().getTime() + jittered(FILES_EVERY_MS)
    instance.storageProblem = await growClaim(this.#world, names, claim, spec.storageBytes)
    await forgetStop(this.#world, names)
    const pod = this.#world.pods.get(keyIn(names, names.pod))
    // Kubelet waits longer and longer; somebody asks now.
    if (pod !== undefined && isBackingOff(pod) && pod.metadata.deletionTimestamp === undefined)
      await this.#world.pods.delete(keyIn(names, names.pod), { uid: pod.metadata.uid })
  }

  async #bringDown({ names }: KnownInstance): Promise<void> {
    const { statefulSet, pod } = await certainObjectsOf(this.#world, names)
    const wanted = parseWanted(statefulSet?.metadata?.annotations?.[ANNOTATIONS.wanted])
    if (pod !== undefined) await witnessStop(this.#world, names, pod)
    if (wanted !== undefined) await ensureStatefulSet(this.#world, names, { ...wanted, running: false })
    else if (pod !== undefined && pod.metadata?.deletionTimestamp === undefined)
      await this.#world.pods.delete(keyIn(names, names.pod), { uid: pod.metadata?.uid ?? '' })
  }

  /**
   * What was read a moment ago may be older than what is there, and somebody may have taken our rights in the namespace away:
   * once more from the source, and with them.
   */
  async #retrying<T>({ names }: KnownInstance, work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        const forbidden = isStoreError(error, 'Forbidden') && error.refusal === undefined
        if ((!forbidden && !isStoreError(error, 'Conflict')) || attempt >= 4) throw error
        if (forbidden && !(await this.#rebound(names.namespace, attempt))) throw error
      }
    }
  }

  /** Makes our bindings in a namespace anew; a right that was just given is known everywhere within moments. */
  async #rebound(namespace: string, attempt: number): Promise<boolean> {
    try {
      await this.prepare(namespace, { afresh: attempt === 0 })
    } catch {
      return false // A namespace that is being deleted takes none; what was refused is what there is to say.
    }
    await sleep(50 * 2 ** attempt)
    return true
  }

  async #keep(key: ResourceKey): Promise<number> {
    const ref = refOf(key)
    if (ref === undefined) return Infinity
    const instance = this.#instance(ref)
    const lookMs = await instance.turns
      .take(() => this.#retrying(instance, () => keepInstance(this.#world, instance)))
      .then(
        ms => {
          instance.refused = undefined
          return ms
        },
        (error: unknown) => this.#refused(instance, error),
      )
    instance.looked = true
    const objects = objectsOf(this.#world, instance.names)
    const gone = objects.statefulSet === undefined && objects.pod === undefined
    if (gone && !instance.destroying && !instance.turns.busy) this.#instances.delete(ref.uid)
    await this.#tell(instance)
    return lookMs
  }

  /** What the cluster refuses is told, and tried again. @returns when @throws whatever else it is */
  #refused(instance: KnownInstance, thrown: unknown): number {
    const error = toldRefusal(thrown)
    if (!(error instanceof ConditionError)) throw thrown
    const { reason, message } = error
    if (instance.refused?.message !== message) this.#world.log.warn({ err: thrown }, message)
    instance.refused = { reason, message }
    return jittered(REFUSED_MS)
  }

  async #tell(instance: KnownInstance): Promise<void> {
    const { authorities } = await this.#world.authority.get()
    const observation = this.#observation(instance, objectsOf(this.#world, instance.names), authorities)
    const { storage, ...news } = observation
    const digest = hash('sha1', JSON.stringify([news, storage?.low]), 'base64')
    if (digest === instance.told) return
    instance.told = digest
    for (const listener of this.#listeners) listener(instance.ref.key)
  }

  #observation(instance: KnownInstance, objects: ReturnType<typeof objectsOf>, authorities: string): ObservedInstance {
    const { names, answered, storageProblem, disk } = instance
    const wanted = parseWanted(objects.statefulSet?.metadata?.annotations?.[ANNOTATIONS.wanted])
    const observation = observationOf(names, objects, {
      answered,
      unlooked: !instance.looked,
      failure: failureOf(instance, objects.pod, this.#world.now().getTime()),
      refused: instance.refused,
      storageProblem,
      exposure: this.#world.settings.exposure[wanted?.spec.kind ?? 'preview'],
      authorities,
    })
    return disk === undefined || observation.state === 'absent' ? observation : { ...observation, storage: disk }
  }

  /** `namespace`: of the instance, where the object itself is in none. */
  #happened({ metadata }: Observed<KubernetesObject>, namespace = metadata.namespace): void {
    const uid = metadata.labels[LABELS.uid]
    const name = metadata.annotations[ANNOTATIONS.resource]
    if (uid !== undefined && name !== undefined) this.#controller.enqueue({ namespace, name: `${name} ${uid}` })
  }

  #enqueue({ ref }: KnownInstance): void {
    this.#controller.enqueue({ namespace: ref.key.namespace, name: `${ref.key.name} ${ref.uid}` })
  }
}

/** Which instance a key of our queue is about: the Environment's name and uid. */
const refOf = ({ namespace, name: text }: ResourceKey): InstanceRef | undefined => {
  const [name = '', uid = ''] = text.split(' ')
  const [organizationId, projectId, environmentId] = name.split('.')
  if (organizationId === undefined || projectId === undefined || environmentId === undefined || uid === '')
    return undefined
  return { key: { namespace, name }, uid, path: { organizationId, projectId, environmentId } }
}
