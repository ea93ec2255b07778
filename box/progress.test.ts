import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { lineProgress } from './progress.ts'

describe('lineProgress', () => {
  it('says nothing of what is done within a second', async () => {
    const lines: string[] = []
    assert.equal(await lineProgress(line => lines.push(line)).during('Starting it', () => Promise.resolve(7)), 7)
    await sleep(1100)
    assert.deepEqual(lines, [])
  }).timeout(5000)

  it('says after a second what it is at, and in the end how long that took', async () => {
    const lines: string[] = []
    await lineProgress(line => lines.push(line)).during('Starting it', async () => {
      await sleep(800)
      assert.deepEqual(lines, [])
      await sleep(400)
      assert.deepEqual(lines, ['Starting it …'])
    })
    assert.match(lines[1] ?? '', /^Starting it: done in 1\.\d s$/)
    assert.equal(lines.length, 2)
  }).timeout(5000)

  it('leaves the last word to the error of a step that fails', async () => {
    const lines: string[] = []
    const failing = lineProgress(line => lines.push(line)).during('Starting it', async () => {
      await sleep(1100)
      throw new Error('no')
    })
    await assert.rejects(failing, /^Error: no$/)
    assert.deepEqual(lines, ['Starting it …'])
  }).timeout(5000)
})
