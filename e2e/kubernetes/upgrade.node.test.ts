/** An upgrade of the product to other images and other defaults, and the way back, over live environments: no database notices. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { V1Pod } from '@kubernetes/client-node'
import { environmentType } from '../../crds/environment-type.ts'
import { sized } from '../../testkit/full.ts'
import { POD } from '../../testkit/kubernetes/pod-faker.ts'
import { STATEFUL_SET } from '../break-postgres.ts'
import { Tenant } from '../tenant.ts'
import { RELEASE_NAMESPACE } from './installation.ts'
import { installedRelease, type Release } from './release.ts'

const LIVE = sized(4, 20)
const SETTLES_MS = 60_000

/** What of a pod a release decides, and an upgrade leaves as it was. */
const given = ({ spec }: V1Pod) => {
  const [container] = spec?.containers ?? []
  return {
    image: container?.image,
    requests: container?.resources?.requests,
    graceSeconds: spec?.terminationGracePeriodSeconds,
    os: spec?.nodeSelector?.['kubernetes.io/os'],
  }
}
/** As testkit/kubernetes/next-release.yaml has it. */
const NEXT = { image: 'svc-postgres:17-next', graceSeconds: 77, os: 'linux' }

describe('an upgrade of the release', function () {
  this.timeout(600_000)
  let release: Release
  let tenant: Tenant
  let namespace: string
  const ids = Array.from({ length: LIVE }, (_, index) => `live-${index + 1}`)
  before(async () => {
    release = await installedRelease()
    tenant = await Tenant.create(release.world)
    ;({ namespace } = tenant.key('live-1'))
    await Promise.all(ids.map(id => tenant.createEnvironment(id, { kind: 'preview' })))
    for (const id of ids)
      await tenant.sql(id, session => session.rows(`create table kept as select '${id}'::text as whose`))
  })
  after(() => Promise.all(ids.map(id => tenant.run('delete', id))))

  const podsIn = async (where: string): Promise<readonly V1Pod[]> =>
    (await release.cluster.objects.list(POD, { namespace: where })).items.toSorted((a, b) =>
      a.metadata!.name! < b.metadata!.name! ? -1 : 1,
    )
  const pods = async () =>
    (await podsIn(namespace)).map(({ metadata, status, ...pod }) => ({
      ...{ uid: metadata?.uid, restarts: status?.containerStatuses?.[0]?.restartCount },
      ...given(pod),
    }))
  const image = async (id: string): Promise<string | undefined> =>
    (await release.world.store.get(environmentType, tenant.key(id)))?.status?.image
  const images = (): Promise<readonly (string | undefined)[]> => Promise.all(ids.map(image))
  const rowsAreThere = async (): Promise<void> => {
    for (const id of ids)
      assert.deepEqual(await tenant.sql(id, session => session.rows('select whose from kept')), [{ whose: id }])
  }
  /** Waits until the operator at work has given every StatefulSet what it gives: only then has it looked at all of them. */
  const allAreGiven = async (graceSeconds: number): Promise<void> => {
    for (const until = Date.now() + SETTLES_MS; ; ) {
      const { items } = await release.cluster.objects.list(STATEFUL_SET, { namespace })
      const others = items.filter(({ spec }) => spec?.template.spec?.terminationGracePeriodSeconds !== graceSeconds)
      if (items.length === LIVE && others.length === 0) return
      assert.ok(
        Date.now() < until,
        `Not given ${graceSeconds} s: ${others.map(({ metadata }) => metadata?.name).join()}`,
      )
      await sleep(200)
    }
  }
  const programsRun = async (tag: string): Promise<void> => {
    const programs = (await podsIn(RELEASE_NAMESPACE)).filter(
      ({ metadata }) =>
        metadata?.deletionTimestamp === undefined &&
        ['operator', 'apiserver'].includes(metadata?.labels?.['app.kubernetes.io/component'] ?? ''),
    )
    assert.ok(programs.length >= 2)
    for (const { spec, metadata } of programs)
      assert.equal(spec?.containers[0]?.image, `svc-control-plane:${tag}`, metadata?.name)
  }

  it(`to other images, shares, graces and places restarts none of ${LIVE} environments, nor does the rollback`, async () => {
    const [before, imagesBefore] = [await pods(), await images()]
    assert.equal(before.length, LIVE)
    const { graceSeconds } = before[0]!
    assert.notEqual(graceSeconds, NEXT.graceSeconds)
    const sessions = await Promise.all(ids.map(id => tenant.open(id)))
    await release.upgrade([], ['testkit/kubernetes/next-release.yaml'])
    await programsRun('next')
    await allAreGiven(NEXT.graceSeconds)
    assert.deepEqual(await pods(), before)
    assert.deepEqual(await images(), imagesBefore)

    // Whoever sleeps meanwhile wakes up as the new release has it; nobody else.
    const [first] = ids
    await tenant.run('suspend', first!)
    await tenant.run('resume', first!)
    const after = await pods()
    const others = after.filter(({ uid }) => before.some(pod => pod.uid === uid))
    const [renewed, ...further] = after.filter(({ uid }) => !before.some(pod => pod.uid === uid))
    assert.equal(others.length, LIVE - 1)
    assert.deepEqual(further, [])
    const { uid: _, ...plain } = renewed!
    const { requests, ...more } = plain
    assert.deepEqual(more, { restarts: 0, ...NEXT })
    assert.notDeepEqual(requests, before[0]!.requests)
    assert.equal(await image(first!), NEXT.image)

    await release.rollback()
    await programsRun('dev')
    await allAreGiven(graceSeconds!)
    assert.deepEqual(await pods(), after)
    assert.deepEqual((await images()).slice(1), imagesBefore.slice(1))
    assert.equal(await image(first!), NEXT.image)
    for (const session of sessions.slice(1)) assert.deepEqual(await session.rows('select 1 as one'), [{ one: 1 }])
    for (const session of sessions) await session.close()
    await rowsAreThere()
    for (const id of ids) assert.equal((await tenant.inPhase(id, 'ready')).phase, 'ready')
  })
})
