/**
 * Sees what is shown on a cluster during a run: every version of every object but Secrets, cluster-wide ones and those of the
 * platform's and its projects' namespaces, and every line that their pods log. And remembers what their Secrets held.
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeConfig, V1Pod, V1Secret } from '@kubernetes/client-node'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObject } from '../../runtime/kubernetes/kubernetes-object.ts'
import { watchObjects } from '../../testkit/kubernetes/watch-objects.ts'
import { secretsIn } from './secrets-in.ts'

interface ResourceList {
  readonly resources: readonly {
    readonly name: string
    readonly kind: string
    readonly namespaced: boolean
    readonly verbs: readonly string[]
  }[]
}
interface GroupList {
  readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[]
}

/** What says nothing, and often. */
const MUTE = new Set(['leases', 'secrets'])
/** Of the platform, of projects, and of the preview of `helm test`. */
const isOurs = ({ metadata }: KubernetesObject): boolean =>
  metadata?.namespace === undefined || metadata.namespace.startsWith('svc-')

/** Where something stands that should not. */
export interface Sighting {
  /** Whose it is: a Secret's `namespace/name key`. */
  readonly secret: string
  /** An object, or a container's log. */
  readonly shownIn: string
}

export class Witness {
  readonly #folder = mkdtempSync(join(tmpdir(), 'svc-witness-'))
  readonly #stop = new AbortController()
  readonly #secrets = new Map<string, string>()
  readonly #pods = new Map<string, V1Pod>()
  readonly #followed = new Set<string>()
  readonly #last = new Map<string, string>()
  readonly #running: Promise<unknown>[] = []
  readonly #config: KubeConfig
  #versions = 0

  private constructor(config: KubeConfig) {
    this.#config = config
  }

  /** Begins to look; what was there before is seen as it is now. */
  static async start(api: KubernetesApi, config: KubeConfig): Promise<Witness> {
    const witness = new Witness(config)
    await witness.#watchAll(api)
    return witness
  }

  /** What Secrets held at any time, with where that was. */
  get secrets(): ReadonlyMap<string, string> {
    return this.#secrets
  }

  /** Every pod that ever was, as it was last. */
  get pods(): readonly V1Pod[] {
    return [...this.#pods.values()]
  }

  /** How much was looked at. */
  get seen(): { readonly versions: number; readonly logs: number } {
    return { versions: this.#versions, logs: this.#followed.size }
  }

  /** Something that no Secret holds and nobody may show, such as a token. */
  plant(name: string, text: string): void {
    this.#secrets.set(text, name)
  }

  /** Every place where one of these texts was shown. */
  sightings(texts: ReadonlyMap<string, string> = this.#secrets): readonly Sighting[] {
    const shown = readFileSync(join(this.#folder, 'shown'))
    const found: Sighting[] = []
    for (const [text, secret] of texts)
      for (const form of new Set([text, Buffer.from(text).toString('base64'), encodeURIComponent(text)])) {
        const at = shown.indexOf(form)
        if (at < 0) continue
        const line = shown.subarray(shown.lastIndexOf(10, at) + 1, at).toString()
        found.push({ secret, shownIn: line.slice(0, line.indexOf('\t')) })
      }
    return found
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** One line, with where it stood before it. */
  #show(where: string, text: string): void {
    appendFileSync(join(this.#folder, 'shown'), `${where}\t${text}\n`)
  }

  async #watchAll(api: KubernetesApi): Promise<void> {
    const { groups } = await api.call<GroupList>({ method: 'GET', path: '/apis' })
    const versions = ['v1', ...groups.map(group => group.preferredVersion.groupVersion)]
    const lists = await Promise.all(
      versions.map(async apiVersion => {
        const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
        const { resources } = await api.call<ResourceList>({ method: 'GET', path })
        return resources.map(resource => ({ ...resource, apiVersion }))
      }),
    )
    for (const { apiVersion, name, kind, namespaced, verbs } of lists.flat()) {
      if (!verbs.includes('watch')) continue
      const type = { apiVersion, kind, plural: name, clusterScoped: !namespaced }
      if (!MUTE.has(name)) this.#watch(api, type, object => this.#see(kind, object))
      if (name === 'secrets') this.#watch(api, type, secret => this.#learn(secret as V1Secret))
    }
  }

  #watch(api: KubernetesApi, type: Parameters<typeof watchObjects>[1], see: (object: KubernetesObject) => void): void {
    this.#running.push(
      watchObjects(api, type, this.#stop.signal, (_, object) => {
        if (object !== undefined && isOurs(object)) see(object)
      }),
    )
  }

  #learn({ metadata, type, data = {} }: V1Secret): void {
    if (type === 'helm.sh/release.v1') return // holds the others' manifests, compressed
    for (const [key, value] of Object.entries(data))
      for (const text of secretsIn(key, value))
        this.#secrets.set(text, `${metadata?.namespace}/${metadata?.name} ${key}`)
  }

  #see(kind: string, object: KubernetesObject): void {
    const { metadata = {} } = object
    const { managedFields: _, resourceVersion: __, ...named } = metadata as Record<string, unknown>
    const text = JSON.stringify({ ...object, metadata: named })
    const uid = `${kind} ${metadata.uid}`
    if (this.#last.get(uid) === text) return
    this.#last.set(uid, text)
    this.#versions++
    this.#show(`${kind} ${metadata.namespace ?? ''}/${metadata.name ?? ''}`, text)
    if (kind === 'Pod') this.#meet(object as V1Pod)
  }

  #meet(pod: V1Pod): void {
    const { namespace = '', name = '', uid = '' } = pod.metadata ?? {}
    this.#pods.set(uid, pod)
    const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {}
    for (const { name: container, containerID, state } of [...initContainerStatuses, ...containerStatuses]) {
      if (containerID === undefined || state?.waiting !== undefined || this.#followed.has(containerID)) continue
      this.#followed.add(containerID)
      this.#running.push(this.#follow({ namespace, name, container }))
    }
  }

  /** Reads a container's log from its beginning to its end. */
  async #follow(at: { readonly namespace: string; readonly name: string; readonly container: string }): Promise<void> {
    const path = `/api/v1/namespaces/${at.namespace}/pods/${at.name}/log?container=${at.container}&follow=true`
    const where = `log ${at.namespace}/${at.name} ${at.container}`
    for (let attempt = 0; attempt < 5 && !this.#stop.signal.aborted; attempt++) {
      if (await this.#read(path, where)) return
      await sleep(200) // it is just being made, or gone already
    }
  }

  /** @returns whether there was something to read */
  async #read(path: string, where: string): Promise<boolean> {
    const options: RequestOptions = { signal: this.#stop.signal }
    await this.#config.applyToHTTPSOptions(options)
    return new Promise(resolve => {
      const asked = request(`${this.#config.getCurrentCluster()?.server}${path}`, options, answer => {
        answer.on('error', () => undefined) // its close tells
        const lines = createInterface({ input: answer })
        lines.on('line', line => this.#show(where, line)).on('error', () => undefined)
        answer.once('close', () => resolve(answer.statusCode === 200))
      })
      asked.once('error', () => resolve(false))
      asked.end()
    })
  }
}
