import assert from 'node:assert/strict'
import type { Observed } from '../../../runtime/kubernetes/object-source.ts'
import { keptPod, keptVolume } from './kept-objects.ts'
import type { FullPod, Pod, Volume } from './object-types.ts'

const metadata = {
  ...{ name: 'main-1-0', namespace: 'shop', uid: 'u', resourceVersion: '7', generation: 0, creationTimestamp: '' },
  ...{ finalizers: [], labels: { kind: 'preview' }, annotations: { figures: '{}' }, ownerReferences: [] },
}
const observed = <O>(spec: unknown, status: unknown): Observed<O & object> =>
  ({ apiVersion: 'v1', kind: 'Any', metadata, spec, status }) as unknown as Observed<O & object>

describe('what is kept of an object', () => {
  it('of a pod is where it is, the claim that it mounts, and how its server is', () => {
    const running = { running: { startedAt: new Date(0) } }
    const container = { name: 'postgres', containerID: 'containerd://1', ready: true, started: true, restartCount: 2 }
    const data = { name: 'data', persistentVolumeClaim: { claimName: 'main-1' } }
    const spec: FullPod['spec'] = {
      ...{ nodeName: 'one', serviceAccountName: 'x', tolerations: [{ key: 'a' }] },
      containers: [{ name: 'postgres', image: 'postgres', env: [{ name: 'A', value: 'b' }] }],
      volumes: [data, { name: 'files', secret: { secretName: 'files' } }],
    }
    const status: FullPod['status'] = {
      ...{
        phase: 'Running',
        conditions: [{ type: 'Ready', status: 'True' }],
        podIP: '10.0.0.1',
        qosClass: 'Burstable',
      },
      containerStatuses: [{ ...container, state: running, lastState: {}, image: 'postgres', imageID: 'sha256:0' }],
    }
    const kept = keptPod(observed<Pod>(spec, status))
    assert.deepEqual(kept.metadata, metadata)
    assert.deepEqual(kept.spec, { nodeName: 'one', volumes: [data] })
    assert.deepEqual(kept.status, {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ ...container, state: running, lastState: {} }],
    })
  })

  it('of a pod that waits for a node is that it waits', () => {
    const status = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: 'no node' }] }
    const kept = keptPod(observed<Pod>({ containers: [] }, status))
    assert.deepEqual([kept.spec, kept.status], [{}, status])
  })

  it('of a volume is whose it is and what becomes of it', () => {
    const claimRef = { namespace: 'shop', name: 'main-1' }
    const spec = { claimRef, persistentVolumeReclaimPolicy: 'Retain', hostPath: { path: '/data' }, capacity: {} }
    const kept = keptVolume(observed<Volume>(spec, { phase: 'Bound' }))
    assert.deepEqual([kept.spec, kept.status], [{ claimRef, persistentVolumeReclaimPolicy: 'Retain' }, undefined])
  })
})
