/** What people type after `kubectl get`: no word of ours means, or hides, something that Kubernetes serves itself. */
import assert from 'node:assert/strict'
import { apiCluster, type TestCluster } from '../testkit/kubernetes/cluster.ts'
import { GROUP } from './metadata.ts'

interface Served {
  readonly name: string
  readonly singularName: string
  readonly kind: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
}
interface GroupList {
  readonly groups: readonly { readonly name: string; readonly preferredVersion: { readonly groupVersion: string } }[]
}

describe('the words of our kinds', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await apiCluster()
    await cluster.installKinds()
  })

  const servedAt = async (path: string): Promise<readonly Served[]> => {
    const { resources } = await cluster.api.call<{ resources: readonly Served[] }>({ method: 'GET', path })
    return resources.filter(({ name }) => !name.includes('/'))
  }
  const namesOf = ({ name, singularName, kind, shortNames = [] }: Served): string[] =>
    [name, singularName, kind.toLowerCase(), ...shortNames].filter(word => word !== '')

  it('are nobody else’s names, short names or categories', async () => {
    const { groups } = await cluster.api.call<GroupList>({ method: 'GET', path: '/apis' })
    const own = groups.find(({ name }) => name === GROUP)
    assert.ok(own !== undefined)
    // Tests have kinds of their own.
    const others = groups.filter(({ name }) => !name.endsWith(GROUP))
    const paths = ['/api/v1', ...others.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)]
    const foreign = (await Promise.all(paths.map(servedAt))).flat()
    const taken = new Set(foreign.flatMap(served => [...namesOf(served), ...(served.categories ?? [])]))
    assert.ok(taken.has('svc') && taken.has('services') && taken.has('all'))
    const ours = await servedAt(`/apis/${own.preferredVersion.groupVersion}`)
    const words = ours.flatMap(served => [...namesOf(served), ...(served.categories ?? [])])
    assert.ok(words.includes('senv') && ours.every(({ categories = [] }) => categories.length > 0))
    assert.deepEqual(
      words.filter(word => taken.has(word)),
      [],
    )
  })
})
