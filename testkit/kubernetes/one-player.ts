/** Only one process at a time plays a cluster: two would end each other's pods, and their operators care for all environments. */
import type { V1ConfigMap } from '@kubernetes/client-node'
import type { KubernetesObjects, ObjectType } from '../../runtime/kubernetes/kubernetes-object.ts'
import { atEnd } from '../at-end.ts'

const CONFIG_MAP: ObjectType<V1ConfigMap> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }
const KEY = { namespace: 'default', name: 'svc-tests-played-by' }

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Takes the part until the run ends. @throws Error when another process of this machine has it */
export const playAlone = async (objects: KubernetesObjects): Promise<void> => {
  const there = await objects.get(CONFIG_MAP, KEY)
  const pid = Number(there?.data?.['pid'])
  if (there !== undefined && pid !== process.pid && isAlive(pid))
    throw new Error(`Process ${pid} plays pods and servers on this cluster: such tests run one process after the other`)
  if (there !== undefined) await objects.delete(CONFIG_MAP, KEY, { uid: there.metadata!.uid! })
  const { metadata } = await objects.create(CONFIG_MAP, { metadata: KEY, data: { pid: String(process.pid) } })
  atEnd(() => objects.delete(CONFIG_MAP, KEY, { uid: metadata!.uid! }))
}
