import assert from 'node:assert/strict'
import { type Thing, thing } from '../../testkit/unreliable-store.ts'
import { type Log, silentLog } from '../log/log.ts'
import { Cache, type CacheEvent } from './cache.ts'

const names = (things: readonly Thing[]): string[] => things.map(({ metadata }) => metadata.name)

/** What handlers were told, in short. */
const recorded = (cache: Cache<Thing, 'value'>): string[] => {
  const told: string[] = []
  cache.subscribe(({ type, object, old, initial }) =>
    told.push(
      `${type} ${object.metadata.name}=${object.spec.value}${old ? ` was ${old.spec.value}` : ''}${initial ? ' initial' : ''}`,
    ),
  )
  return told
}

const indexed = (log: Log = silentLog): Cache<Thing, 'value'> =>
  new Cache({ log, indexes: { value: object => [String(object.spec.value)] } })

describe('Cache', () => {
  it('finds objects by key, namespace, label and index, and follows them as they change', () => {
    const cache = indexed()
    cache.replace([thing('a', 1, 1), thing('b', 2, 2), thing('c', 3, 1, 'uid-c', 'other')])
    assert.equal(cache.get({ namespace: 'n', name: 'a' })?.spec.value, 1)
    assert.equal(cache.get({ namespace: 'other', name: 'a' }), undefined)
    assert.deepEqual(names(cache.list()), ['a', 'b', 'c'])
    assert.deepEqual(names(cache.list({ namespace: 'n' })), ['a', 'b'])
    assert.deepEqual(names(cache.list({ namespace: 'nowhere' })), [])
    assert.deepEqual(names(cache.list({ labels: { parity: 'odd' } })), ['a', 'c'])
    assert.deepEqual(names(cache.list({ namespace: 'n', labels: { parity: 'odd' } })), ['a'])
    assert.deepEqual(names(cache.byIndex('value', '1')), ['a', 'c'])
    cache.apply('modified', thing('a', 4, 2))
    assert.deepEqual(names(cache.byIndex('value', '1')), ['c'])
    assert.deepEqual(names(cache.byIndex('value', '2')), ['b', 'a'])
    cache.apply('deleted', thing('b', 5, 2))
    assert.deepEqual(names(cache.byIndex('value', '2')), ['a'])
    assert.deepEqual(names(cache.list({ namespace: 'n' })), ['a'])
  })

  it('tells handlers of each change with what was before, and of nothing when the version is the same', () => {
    const cache = indexed()
    const told = recorded(cache)
    assert.equal(cache.replace([thing('a', 1, 1)]), 1)
    cache.apply('modified', thing('a', 2, 2))
    cache.apply('modified', thing('a', 2, 2))
    cache.apply('added', thing('b', 3, 3))
    cache.apply('deleted', thing('b', 4, 4))
    cache.apply('deleted', thing('b', 4, 4))
    assert.deepEqual(told, ['added a=1 initial', 'modified a=2 was 1', 'added b=3', 'deleted b=4 was 3'])
  })

  it('makes deletions of what a later list lacks, with the last known state', () => {
    const cache = indexed()
    cache.replace([thing('a', 1, 1), thing('b', 2, 2)])
    const told = recorded(cache)
    told.length = 0
    assert.equal(cache.replace([thing('a', 1, 1), thing('c', 5, 5)]), 2)
    assert.deepEqual(told, ['deleted b=2 was 2', 'added c=5'])
  })

  it('tells of both lives when a name was used again', () => {
    const cache = indexed()
    cache.replace([thing('a', 1, 1, 'first')])
    const told = recorded(cache)
    told.length = 0
    cache.apply('modified', thing('a', 9, 9, 'second'))
    cache.apply('deleted', thing('a', 8, 8, 'first'))
    assert.deepEqual(told, ['deleted a=1 was 1', 'added a=9'])
    assert.equal(cache.get({ namespace: 'n', name: 'a' })?.metadata.uid, 'second')
  })

  it('shows a handler the cache as it is after the change', () => {
    const cache = indexed()
    cache.replace([])
    let seen: unknown
    cache.subscribe(({ object }) => (seen = cache.get({ namespace: 'n', name: object.metadata.name })?.spec.value))
    cache.apply('added', thing('a', 1, 7))
    assert.equal(seen, 7)
    cache.apply('deleted', thing('a', 2, 7))
    assert.equal(seen, undefined)
  })

  it('survives a handler that throws, says so, and still tells the others', () => {
    const errors: unknown[] = []
    const log: Log = { ...silentLog, error: fields => errors.push(fields) }
    const cache = indexed(log)
    cache.subscribe(() => {
      throw new Error('bad handler')
    })
    const told = recorded(cache)
    cache.replace([thing('a', 1, 1)])
    assert.deepEqual(told, ['added a=1 initial'])
    assert.equal(errors.length, 1)
  })

  it('tells a late subscriber of what is there, and no one who has left', () => {
    const cache = indexed()
    cache.replace([thing('a', 1, 1)])
    const events: CacheEvent<Thing>[] = []
    const leave = cache.subscribe(event => events.push(event))
    leave()
    cache.apply('modified', thing('a', 2, 2))
    assert.deepEqual(
      events.map(({ type, initial }) => [type, initial]),
      [['added', true]],
    )
  })

  it('keeps what the transform makes of an object', () => {
    const cache = new Cache<Thing>({
      log: silentLog,
      transform: object => ({ ...object, spec: { value: -object.spec.value } }),
    })
    cache.replace([thing('a', 1, 1)])
    assert.equal(cache.list()[0]?.spec.value, -1)
  })

  it('is synced by the first list, an empty one too, and lets waiters go or give up', async () => {
    const cache = indexed()
    assert.equal(cache.synced, false)
    await assert.rejects(cache.waitForSync(AbortSignal.abort(new Error('no time'))), /no time/)
    const waiting = cache.waitForSync(new AbortController().signal)
    cache.replace([])
    await waiting
    await cache.waitForSync()
    assert.equal(cache.synced, true)
  })
})
