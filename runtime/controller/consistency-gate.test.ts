import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sized } from '../../testkit/full.ts'
import { ManualClock } from '../../testkit/manual-clock.ts'
import { ConsistencyGate, NotCaughtUpError } from './consistency-gate.ts'

const KIND = 'Thing'
const KEY = { namespace: 'ns', name: 'one' }

const setUp = () => {
  const clock = new ManualClock()
  const ends: string[] = []
  const gate = new ConsistencyGate({ clock, observer: { waited: (type, end) => ends.push(`${type} ${end}`) } })
  return { clock, gate, ends, judge: (seenUpTo?: string) => gate.judge(KIND, KEY, seenUpTo) }
}

describe('ConsistencyGate', () => {
  it('is open for what was never written, and shuts after a write until its version was seen', () => {
    const { gate, judge } = setUp()
    assert.equal(judge(undefined), 'open')
    gate.wrote(KIND, KEY, '10')
    assert.deepEqual(judge(undefined), { retryAfterMs: 25 })
    assert.deepEqual(judge('9'), { retryAfterMs: 25 })
    assert.equal(judge('10'), 'open')
    assert.equal(gate.size, 0)
  })

  it('compares numbers, not texts, of any length', () => {
    const { gate, judge } = setUp()
    gate.wrote(KIND, KEY, '9007199254740993')
    assert.notEqual(judge('9007199254740992'), 'open')
    assert.equal(judge('10000000000000000'), 'open')
    gate.wrote(KIND, KEY, '10')
    assert.notEqual(judge('9'), 'open')
  })

  it('waits for the newest of several writes, in whatever order their answers came', () => {
    const { gate, judge } = setUp()
    gate.wrote(KIND, KEY, '12')
    gate.wrote(KIND, KEY, '11')
    assert.notEqual(judge('11'), 'open')
    assert.equal(judge('12'), 'open')
  })

  it('tells kinds and keys apart', () => {
    const { gate } = setUp()
    gate.wrote(KIND, KEY, '10')
    assert.equal(gate.judge('Other', KEY, '1'), 'open')
    assert.equal(gate.judge(KIND, { ...KEY, name: 'two' }, '1'), 'open')
  })

  it('never waits for a version that is no number, on either side', () => {
    const { gate, judge } = setUp()
    gate.wrote(KIND, KEY, 'opaque')
    assert.equal(judge('1'), 'open')
    gate.wrote(KIND, KEY, '10')
    assert.equal(judge('opaque'), 'open')
  })

  it('asks the store after five seconds, and then believes a cache only from the version that was read', () => {
    const { gate, clock, judge } = setUp()
    gate.wrote(KIND, KEY, '10')
    clock.advanceNow(4_999)
    assert.notEqual(judge('9'), 'ask')
    clock.advanceNow(1)
    assert.equal(judge('9'), 'ask')
    gate.wasRead(KIND, KEY, '14')
    assert.equal(judge('10'), 'ask') // the cache hangs: it is not waited for once more
    assert.equal(judge('14'), 'open')
  })

  it('gives in to a store that was set back: what was read there counts, not what was written', () => {
    const { gate, clock, judge } = setUp()
    gate.wrote(KIND, KEY, '1000')
    clock.advanceNow(5_000)
    gate.wasRead(KIND, KEY, '7')
    assert.equal(judge('7'), 'open')
  })

  it('asks at once after a write whose answer was lost', () => {
    const { gate, judge } = setUp()
    gate.mayHaveWritten(KIND, KEY)
    assert.equal(judge('999999'), 'ask')
    gate.wasRead(KIND, KEY, '20')
    assert.deepEqual(judge('19'), { retryAfterMs: 25 })
    assert.equal(judge('20'), 'open')
  })

  it('lets pass at once what was seen within a moment, else asks for another look, each later than the last', async () => {
    const { gate, clock, ends } = setUp()
    let seen = '9'
    gate.wrote(KIND, KEY, '10')
    const passing = gate.pass(KIND, KEY, () => seen)
    await clock.advance(3)
    seen = '10'
    await clock.advance(10)
    assert.equal(await passing, 'open')
    gate.wrote(KIND, KEY, '11')
    const waits: number[] = []
    for (;;) {
      const look = gate.pass(KIND, KEY, () => seen).catch((error: unknown) => error)
      await clock.advance(25)
      const end = await look
      if (end === 'ask') break
      assert.ok(end instanceof NotCaughtUpError)
      waits.push(end.retryAfterMs)
      await clock.advance(end.retryAfterMs)
    }
    assert.deepEqual(waits, [25, 50, 100, 200, 400, 800, 1600, 3200].slice(0, waits.length))
    assert.ok(waits.length >= 6)
    assert.deepEqual(ends, [`${KIND} caught_up`, ...waits.map(() => `${KIND} requeued`), `${KIND} asked`])
  })

  it('never lets a look act on less than its own last write, and never waits for ever, whatever happens', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('write' as const), answered: fc.boolean() }),
      fc.record({ do: fc.constant('foreignWrite' as const) }),
      fc.record({ do: fc.constant('see' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 6_000 }) }),
      fc.record({ do: fc.constant('look' as const) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const { gate, clock, judge } = setUp()
        let version = 1
        let seen = 1
        let own = 0
        let believed = 0
        let behindSince: number | undefined
        for (const one of steps)
          if (one.do === 'write') {
            own = ++version
            if (one.answered) gate.wrote(KIND, KEY, String(version))
            else gate.mayHaveWritten(KIND, KEY)
            behindSince = clock.now()
          } else if (one.do === 'foreignWrite') version += 1
          else if (one.do === 'see') seen = Math.max(seen, Math.floor(seen + (version - seen) * one.share))
          else if (one.do === 'pass') clock.advanceNow(one.ms)
          else {
            const verdict = judge(String(seen))
            const acted = verdict === 'open' ? seen : verdict === 'ask' ? version : undefined
            if (verdict === 'ask') gate.wasRead(KIND, KEY, String(version))
            if (acted === undefined) {
              assert.ok(behindSince !== undefined && clock.now() - behindSince < 5_000, 'waits too long')
              continue
            }
            assert.ok(acted >= own, `acted on ${acted}, own last write was ${own}`)
            assert.ok(acted >= believed, `went back from ${believed} to ${acted}`)
            believed = acted
            if (verdict === 'ask') behindSince = clock.now()
          }
      }),
      { numRuns: sized(300, 20_000) },
    )
  })
})
