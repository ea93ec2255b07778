/**
 * A port of this machine that leads through the API server to a pod of a Service, like `kubectl port-forward`, but each
 * connection for itself: pods may come and go. Needs nothing of the network between here and the cluster's.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { type KubeConfig, PortForward, type V1Pod, type V1Service } from '@kubernetes/client-node'
import type { KubernetesObjects, ObjectKey, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'

const SERVICE: ObjectType<V1Service> = { apiVersion: 'v1', kind: 'Service', plural: 'services' }

/** What is used of a WebSocket, whose own types its package leaves out. */
interface Stream {
  onclose: () => void
  close(): void
}

/** How to reach a cluster. */
export interface ClusterHandles {
  readonly config: KubeConfig
  readonly objects: KubernetesObjects
}

export interface ServiceDoor {
  readonly port: number
  /** Ends it, and what goes through it. */
  close(): Promise<void>
}

const isThere = ({ metadata, status }: V1Pod): boolean =>
  metadata?.deletionTimestamp === undefined && status?.phase === 'Running'

const isReady = ({ status }: V1Pod): boolean =>
  status?.conditions?.some(({ type, status: met }) => type === 'Ready' && met === 'True') === true

/** A pod that a Service leads to, and its port. @throws Error when there is none */
const podOf = async ({ objects }: ClusterHandles, service: ObjectKey): Promise<{ pod: string; port: number }> => {
  const { spec } = (await objects.get(SERVICE, service)) ?? {}
  if (spec?.selector === undefined) throw new Error(`There is no Service ${service.namespace}/${service.name}`)
  const { items } = await objects.list(POD, { namespace: service.namespace, labels: spec.selector })
  const running = items.filter(isThere)
  // Kubelet may see a moment later than everybody else that a server answers.
  const pod = running.find(isReady) ?? (spec.publishNotReadyAddresses === true ? running[0] : undefined)
  if (pod === undefined) throw new Error(`No pod of ${service.namespace}/${service.name} is ready`)
  const wanted = spec.ports?.[0]?.targetPort ?? spec.ports?.[0]?.port
  const ports = pod.spec?.containers.flatMap(container => container.ports ?? []) ?? []
  const port = ports.find(({ name, containerPort }) => name === wanted || containerPort === Number(wanted))
  return { pod: pod.metadata!.name!, port: port?.containerPort ?? Number(wanted) }
}

/** Opens a door to a Service; which pod is asked for when somebody comes. */
export const openServiceDoor = async (cluster: ClusterHandles, service: ObjectKey): Promise<ServiceDoor> => {
  const forward = new PortForward(cluster.config)
  const inside = new Set<Socket>()
  const lead = async (socket: Socket): Promise<void> => {
    const { pod, port } = await podOf(cluster, service)
    const stream = (await forward.portForward(service.namespace, pod, [port], socket, null, socket)) as Stream
    stream.onclose = () => socket.destroy()
    socket.once('close', () => stream.close())
    socket.resume()
  }
  const server: Server = createServer({ pauseOnConnect: true }, socket => {
    inside.add(socket)
    socket.once('close', () => inside.delete(socket))
    socket.on('error', () => undefined) // its close tells
    lead(socket).catch(() => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.close()
      for (const socket of inside) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
  }
}
