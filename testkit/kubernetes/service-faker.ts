/**
 * Plays the network on a cluster without one, and the servers in it: on every Service's own address a Postgres stand-in answers while
 * one of its pods is ready. Needs a cluster whose Services have loopback addresses (`--service-cluster-ip-range=127.96.0.0/16`).
 */

import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { V1Service } from '@kubernetes/client-node'
import { POSTGRES_PORT } from '../../lib/model/environment.ts'
import { secrets } from '../../runtime/kubernetes/core-kinds.ts'
import type { KubernetesApi } from '../../runtime/kubernetes/kubernetes-api.ts'
import type { KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { kubernetesObjects } from '../../runtime/kubernetes/kubernetes-objects.ts'
import type { PodFaker } from './pod-faker.ts'
import { type StandinFiles, StandinServer } from './postgres-standin.ts'
import { watchObjects } from './watch-objects.ts'

const SERVICE: ObjectType<V1Service> = { apiVersion: 'v1', kind: 'Service', plural: 'services' }
const UID = 'svc.internal/uid'

export class ServiceFaker {
  readonly #objects: KubernetesObjects
  readonly #pods: PodFaker
  readonly #stop = new AbortController()
  readonly #doors = new Map<string, Server>()
  /** By the uid of the environment: what a server keeps outlives its pods. */
  readonly #servers = new Map<string, Promise<StandinServer>>()
  /** The Secrets that kubelet mounts for it, by the uid of the environment. */
  readonly #mounted = new Map<string, readonly string[]>()
  /** The pod in which a server was last asked. */
  readonly #ranIn = new Map<string, string>()
  readonly #failures: unknown[] = []
  readonly #running: Promise<void>

  private constructor(api: KubernetesApi, pods: PodFaker) {
    this.#objects = kubernetesObjects(api, 'service-faker')
    this.#pods = pods
    this.#running = watchObjects(api, SERVICE, this.#stop.signal, (uid, service) => this.#see(uid, service))
  }

  static start(api: KubernetesApi, pods: PodFaker): ServiceFaker {
    return new ServiceFaker(api, pods)
  }

  /** What went wrong in the faker itself. */
  get failures(): readonly unknown[] {
    return this.#failures
  }

  /** Statements that no stand-in understood. */
  async strange(): Promise<string[]> {
    return (await Promise.all(this.#servers.values())).flatMap(server => server.strange)
  }

  /** How often the operator signed in as superuser so far, to any server. */
  async superuserSessions(): Promise<number> {
    const servers = await Promise.all(this.#servers.values())
    return servers.reduce((sum, server) => sum + server.superuserSessions, 0)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
    for (const door of this.#doors.values()) door.close()
  }

  #see(uid: string, service: V1Service | undefined): void {
    const { selector, clusterIP, ports } = service?.spec ?? {}
    if (service === undefined || selector === undefined) {
      this.#doors.get(uid)?.close()
      this.#doors.delete(uid)
      return
    }
    const owner = service.metadata?.labels?.[UID]
    const ours =
      owner !== undefined && clusterIP?.startsWith('127.') === true && ports?.some(({ port }) => port === POSTGRES_PORT)
    if (!ours || this.#doors.has(uid)) return
    const namespace = service.metadata!.namespace!
    const door = createServer(socket => {
      const pod = this.#pods.answering(namespace, selector)
      if (pod === undefined) {
        socket.resetAndDestroy()
        return
      }
      this.#server(namespace, owner, pod).then(
        server => server.serve(socket),
        (error: unknown) => {
          this.#failures.push(error)
          socket.destroy()
        },
      )
    })
    door.listen(POSTGRES_PORT, clusterIP)
    once(door, 'listening').catch((error: unknown) => this.#failures.push(error))
    this.#doors.set(uid, door)
  }

  async #server(namespace: string, owner: string, pod: string): Promise<StandinServer> {
    const mounted = this.#pods.secretsOf(pod)
    // A pod may be gone by the time that its server reads again.
    if (mounted.length > 0) this.#mounted.set(owner, mounted)
    let starting = this.#servers.get(owner)
    if (starting === undefined) {
      starting = StandinServer.start(() => this.#files(namespace, owner))
      this.#servers.set(owner, starting)
      starting.catch(() => this.#servers.delete(owner))
    }
    const server = await starting
    const before = this.#ranIn.get(owner)
    this.#ranIn.set(owner, pod)
    // Another pod is another start: its files are read again.
    if (before !== undefined && before !== pod) server.files = await server.readFiles()
    return server
  }

  /** As kubelet mounts them. */
  async #files(namespace: string, owner: string): Promise<StandinFiles> {
    const names = this.#mounted.get(owner) ?? []
    const found = await Promise.all(names.map(name => this.#objects.get(secrets, { namespace, name })))
    const { data } = found.find(secret => secret?.type === 'kubernetes.io/tls') ?? {}
    if (data === undefined) throw new Error(`No files of the server of ${owner}`)
    const read = (name: string): string => atob(data[name] ?? '')
    return {
      certificate: read('tls.crt'),
      key: read('tls.key'),
      authorities: read('ca.crt'),
      settings: read('postgresql.conf'),
    }
  }
}
