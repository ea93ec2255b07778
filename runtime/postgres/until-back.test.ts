import assert from 'node:assert/strict'
import { isServerAway, untilBack } from './until-back.ts'

const coded = (code: string): Error => Object.assign(new Error('as the driver says'), { code })

describe('untilBack', () => {
  it('tells a server that is away from one that refuses', () => {
    for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', '57P01', '57P02', '57P03', '08006'])
      assert.equal(isServerAway(coded(code)), true, code)
    assert.equal(isServerAway(new Error('Connection terminated unexpectedly')), true)
    assert.equal(isServerAway(new Error('Cannot look', { cause: coded('57P03') })), true)
    for (const code of ['28P01', '42501', '3D000', '57014']) assert.equal(isServerAway(coded(code)), false, code)
    assert.equal(isServerAway('text'), false)
  })

  it('repeats the work while the server is away, and answers what it answered', async () => {
    let tries = 0
    const work = async (): Promise<string> => {
      if (++tries < 3) throw coded('ECONNREFUSED')
      return 'done'
    }
    assert.equal(await untilBack(work, 30_000), 'done')
    assert.equal(tries, 3)
  })

  it('throws at once what is no absence, and an absence when the time is over', async () => {
    let tries = 0
    const refuse = async (): Promise<never> => {
      tries++
      throw coded('28P01')
    }
    await assert.rejects(untilBack(refuse, 30_000), { code: '28P01' })
    assert.equal(tries, 1)
    await assert.rejects(
      untilBack(async () => {
        throw coded('57P03')
      }, 0),
      { code: '57P03' },
    )
  })
})
