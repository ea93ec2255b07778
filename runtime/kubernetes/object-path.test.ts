import assert from 'node:assert/strict'
import { collectionPath, labelSelector, objectPath, resourceOf } from './object-path.ts'

const pods = { apiVersion: 'v1', plural: 'pods' }
const nodes = { apiVersion: 'v1', plural: 'nodes' }
const namespaces = { apiVersion: 'v1', plural: 'namespaces' }
const sets = { apiVersion: 'apps/v1', plural: 'statefulsets' }

describe('paths of the API server', () => {
  for (const [path, built, resource] of [
    ['/api/v1/pods', collectionPath(pods), 'pods'],
    ['/api/v1/namespaces/n/pods', collectionPath(pods, 'n'), 'pods'],
    ['/api/v1/namespaces/n/pods/p', objectPath(pods, { namespace: 'n', name: 'p' }), 'pods'],
    ['/api/v1/nodes/x', objectPath(nodes, { namespace: '', name: 'x' }), 'nodes'],
    ['/api/v1/namespaces/n', objectPath(namespaces, { namespace: '', name: 'n' }), 'namespaces'],
    ['/apis/apps/v1/statefulsets', collectionPath(sets), 'statefulsets'],
    [
      '/apis/apps/v1/namespaces/n/statefulsets/s/scale',
      objectPath(sets, { namespace: 'n', name: 's' }, 'scale'),
      'statefulsets',
    ],
    ['/api/v1/namespaces/n/pods/..%2Fsecrets', objectPath(pods, { namespace: 'n', name: '../secrets' }), 'pods'],
  ] as const)
    it(`${path} is about ${resource}`, () => {
      assert.equal(built, path)
      assert.equal(resourceOf(path), resource)
    })

  it('what is no object’s path is other', () => {
    for (const path of ['/readyz', '/', '', '/version']) assert.equal(resourceOf(path), 'other')
  })

  it('a label selector names every pair, and nothing when there is none', () => {
    assert.equal(labelSelector({ a: 'b', 'x/y': '' }), 'a=b,x/y=')
    assert.equal(labelSelector({}), undefined)
    assert.equal(labelSelector(undefined), undefined)
  })
})
