/** Runs a command in a pod's container, like `kubectl exec`. */
import { Writable } from 'node:stream'
import { Exec, type V1Status } from '@kubernetes/client-node'
import type { ObjectKey } from '../../runtime/kubernetes/kubernetes-object.ts'
import type { ClusterHandles } from './service-door.ts'

const DEADLINE_MS = 30_000

/** @returns what it printed. @throws Error when it failed, with what it said */
export const runInPod = async (
  { config }: ClusterHandles,
  pod: ObjectKey,
  container: string,
  command: readonly string[],
): Promise<string> => {
  const said = { out: '', err: '' }
  const into = (stream: 'out' | 'err'): Writable =>
    new Writable({
      write: (chunk: Buffer, _, done) => {
        said[stream] += chunk.toString()
        done()
      },
    })
  const { promise, resolve, reject } = Promise.withResolvers<V1Status>()
  const deadline = setTimeout(() => reject(new Error(`No end of ${command[0]} within ${DEADLINE_MS} ms`)), DEADLINE_MS)
  try {
    const exec = new Exec(config)
    await exec.exec(pod.namespace, pod.name, container, [...command], into('out'), into('err'), null, false, resolve)
    const status = await promise
    if (status.status !== 'Success') throw new Error(`${command.join(' ')}: ${status.message}\n${said.err}`)
    return said.out
  } finally {
    clearTimeout(deadline)
  }
}
