import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ANNOTATIONS, LABELS } from '../../../crds/metadata.ts'
import { DELETION_POLICIES, type DeletionPolicy } from '../../../lib/model/environment.ts'
import { mergePatch } from '../../../runtime/store/merge-patch.ts'
import { sized } from '../../../testkit/full.ts'
import type { InstanceRef } from '../host.ts'
import { instanceNames } from './instance-names.ts'
import { isKept, isVolumeOf, livingFate, volumeChange } from './judge-volume.ts'
import type { Claim, Volume } from './object-types.ts'

const REF: InstanceRef = {
  key: { namespace: 'ns', name: 'acme.app.main' },
  uid: '0a1b2c3d-0000-4000-8000-000000000001',
  path: { organizationId: 'acme', projectId: 'app', environmentId: 'main' },
}
const NAMES = instanceNames(REF)
const claim = (policy?: string, going = false): Claim => ({
  metadata: {
    uid: 'claim-uid',
    annotations: policy === undefined ? {} : { [ANNOTATIONS.deletionPolicy]: policy },
    ...(going ? { deletionTimestamp: '2026-11-27T12:00:00Z' } : {}),
  },
})
const volume = (reclaim: string, { provisioned = true, claimUid = 'claim-uid', labelled = true } = {}): Volume => ({
  metadata: {
    uid: 'volume-uid',
    labels: labelled ? NAMES.labels : {},
    annotations: provisioned ? { 'pv.kubernetes.io/provisioned-by': 'example.com/disks' } : {},
  },
  spec: {
    persistentVolumeReclaimPolicy: reclaim,
    claimRef: { namespace: 'ns', name: NAMES.claim, uid: claimUid },
  },
})
const after = (before: Volume, fate: Parameters<typeof volumeChange>[2]): Volume => {
  const change = volumeChange(NAMES, before, fate)
  return change === undefined ? before : (mergePatch(before, change) as Volume)
}

describe('the fate of a volume', () => {
  const rows: readonly (readonly [why: string, claim: Claim, before: Volume, reclaim: string])[] = [
    ['its data is to be kept', claim('Retain'), volume('Delete'), 'Retain'],
    ['its data is to go, and its class keeps volumes', claim('Delete'), volume('Retain'), 'Delete'],
    ['somebody deletes its claim', claim('Delete', true), volume('Delete'), 'Retain'],
    ['somebody deletes a claim that says nothing', claim(undefined, true), volume('Delete'), 'Retain'],
    [
      'nobody provisioned it, so that nobody would remove it',
      claim('Delete'),
      volume('Retain', { provisioned: false }),
      'Retain',
    ],
    [
      'nobody provisioned it, and it is to be kept',
      claim('Retain'),
      volume('Recycle', { provisioned: false }),
      'Retain',
    ],
  ]
  for (const [why, given, before, reclaim] of rows)
    it(`is ${reclaim} where it was ${before.spec?.persistentVolumeReclaimPolicy}: ${why}`, () => {
      const { metadata, spec } = after(before, livingFate(given)!)
      assert.equal(spec?.persistentVolumeReclaimPolicy, reclaim)
      assert.equal(metadata?.labels?.[LABELS.uid], REF.uid)
      assert.equal(metadata.annotations?.[ANNOTATIONS.resource], 'acme.app.main')
    })

  it('is nobody’s to say while a claim says nothing, or a word that is none of ours', () => {
    assert.deepEqual([livingFate(claim()), livingFate(claim('Keep'))], [undefined, undefined])
  })

  it('is written bound to the volume that was read, with when it may end, and once', () => {
    const fate = { policy: 'Retain', retainedUntil: '2030-01-01T00:00:00.000Z' } as const
    const change = volumeChange(NAMES, volume('Retain'), fate) as Volume
    assert.equal(change.metadata?.uid, 'volume-uid')
    const kept = after(volume('Retain'), fate)
    assert.equal(kept.metadata?.labels?.[LABELS.retained], 'true')
    assert.equal(kept.metadata.annotations?.[ANNOTATIONS.retainedUntil], fate.retainedUntil)
    assert.equal(volumeChange(NAMES, kept, fate), undefined)
    assert.equal(volumeChange(NAMES, kept, { policy: 'Retain' }), undefined, 'what is said of its end stays')
  })

  it('is ours to say of the claim’s own volume only', () => {
    assert.ok(isVolumeOf(NAMES, claim('Delete'), volume('Delete', { labelled: false })))
    assert.ok(!isVolumeOf(NAMES, claim('Delete'), volume('Delete', { claimUid: 'another' })))
    assert.ok(isVolumeOf(NAMES, undefined, volume('Retain')))
    assert.ok(!isVolumeOf(NAMES, undefined, volume('Retain', { labelled: false })), 'a name alone proves nothing')
    const elsewhere = { ...volume('Retain'), spec: { claimRef: { namespace: 'other', name: NAMES.claim } } }
    assert.ok(!isVolumeOf(NAMES, undefined, elsewhere))
    assert.ok(!isVolumeOf(NAMES, undefined, { ...volume('Retain'), spec: {} }))
  })

  type Step =
    | { readonly do: 'policy'; readonly policy: DeletionPolicy }
    | { readonly do: 'edit'; readonly reclaim: string }
    | { readonly do: 'unlabel' }
    | { readonly do: 'delete the claim' }
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constant('policy' as const), policy: fc.constantFrom(...DELETION_POLICIES) }),
    fc.record({ do: fc.constant('edit' as const), reclaim: fc.constantFrom('Retain', 'Delete', 'Recycle') }),
    fc.constantFrom<Step>({ do: 'unlabel' }, { do: 'delete the claim' }),
  )
  it('is the policy’s after any history, one write each, and never Delete once a claim goes that nobody asked to', () => {
    const live = (steps: readonly Step[]): void => {
      let [policy, going, now] = ['Retain' as DeletionPolicy, false, volume('Delete', { labelled: false })]
      for (const each of [...steps, { do: 'policy', policy: 'Retain' } as const]) {
        if (each.do === 'policy') policy = each.policy
        else if (each.do === 'delete the claim') going = true
        else if (each.do === 'unlabel') now = mergePatch(now, { metadata: { labels: null } }) as Volume
        else now = mergePatch(now, { spec: { persistentVolumeReclaimPolicy: each.reclaim } }) as Volume
        const fate = livingFate(claim(policy, going))!
        now = after(now, fate)
        assert.equal(isKept(now), going || policy === 'Retain')
        assert.equal(volumeChange(NAMES, now, fate), undefined)
        assert.ok(isVolumeOf(NAMES, undefined, now), 'it is known without its claim')
      }
    }
    fc.assert(fc.property(fc.array(step, { maxLength: 12 }), live), { numRuns: sized(300, 5_000) })
  })
})
