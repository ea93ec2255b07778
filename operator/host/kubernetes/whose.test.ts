import assert from 'node:assert/strict'
import { LABELS } from '../../../crds/metadata.ts'
import { buildService } from './build-service.ts'
import { type InstanceNames, instanceNames } from './instance-names.ts'
import type { Pod, Service, StatefulSet } from './object-types.ts'
import { isOurPod, isOurService, isOurStatefulSet } from './whose.ts'

const path = { organizationId: 'acme', projectId: 'shop', environmentId: 'main' }
const of = (uid: string): InstanceNames => instanceNames({ key: { namespace: 'n', name: 'acme.shop.main' }, uid, path })
const ours = of('11111111-1111-4111-8111-111111111111')
/** Of a predecessor with the same id, or of nobody: somebody wrote it into a label. */
const other = of('22222222-2222-4222-8222-222222222222')

describe('whose an object is', () => {
  const service = buildService(ours, { type: 'None' })
  const changed = (service: Service, { owner = ours, label = ours, selector = ours }): Service => ({
    ...service,
    metadata: {
      ...service.metadata,
      ownerReferences: [owner.owner],
      labels: { ...service.metadata?.labels, [LABELS.uid]: label.owner.uid },
    },
    spec: { selector: { ...service.spec?.selector, [LABELS.uid]: selector.owner.uid } },
  })

  for (const mark of ['owner', 'label', 'selector'] as const)
    it(`a Service whose ${mark} somebody changed is still ours, and nobody else’s`, () => {
      const edited = changed(service, { [mark]: other })
      assert.deepEqual([isOurService(edited, ours), isOurService(edited, other)], [true, false])
    })

  it('a Service that has lost a mark is still ours', () => {
    const { ownerReferences: _, ...metadata } = service.metadata ?? {}
    assert.equal(isOurService({ ...service, metadata }, ours), true)
    assert.equal(isOurService({ ...service, metadata: { ...service.metadata, labels: {} } }, ours), true)
    assert.equal(isOurService({ ...service, spec: {} }, ours), true)
  })

  it('a Service of a predecessor is not, nor one that somebody made under the name', () => {
    const predecessors = changed(service, { owner: other, label: other, selector: other })
    assert.deepEqual([isOurService(predecessors, ours), isOurService(predecessors, other)], [false, true])
    assert.equal(isOurService({ metadata: { name: ours.name } }, ours), false)
    assert.equal(isOurService(undefined, ours), false)
  })

  it('a StatefulSet is that of its selector, whatever its labels and owners say', () => {
    const set = (uid: string): StatefulSet => ({
      metadata: { labels: { [LABELS.uid]: other.owner.uid }, ownerReferences: [other.owner] },
      spec: { selector: { matchLabels: { [LABELS.uid]: uid } }, serviceName: 'x', template: {} },
    })
    assert.deepEqual(
      [isOurStatefulSet(set(ours.owner.uid), ours), isOurStatefulSet(set(ours.owner.uid), other)],
      [true, false],
    )
    assert.equal(isOurStatefulSet(undefined, ours), false)
  })

  it('a pod is that of the claim that it mounts', () => {
    const pod: Pod = {
      metadata: { labels: { [LABELS.uid]: other.owner.uid } },
      spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: ours.claim } }] },
    }
    assert.deepEqual([isOurPod(pod, ours), isOurPod(pod, other)], [true, false])
  })
})
