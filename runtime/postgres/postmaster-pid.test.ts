import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parsePostmasterFile, processBirth } from './postmaster-pid.ts'

const WHOLE = '4711\n/srv/data\n1764288000\n20001\n/run/s\n127.0.0.1\n  1234 5\nready   \n'

describe('postmaster.pid', () => {
  it('tells pid, port, socket folder and status', () => {
    assert.deepEqual(parsePostmasterFile(WHOLE), {
      pid: 4711,
      startedAtEpochSeconds: 1_764_288_000,
      port: 20_001,
      socketFolder: '/run/s',
      status: 'ready',
    })
  })

  it('is read while it is being written, and is none when it is something else', () => {
    assert.equal(parsePostmasterFile('4711\n/srv/data\n1764288000\n20001\n/run/s\n\n')?.status, undefined)
    for (const text of ['', '\n', 'x\n/srv', '0\n', '12.5\n', '1e3\n', '99999999999999999999\n'])
      assert.equal(parsePostmasterFile(text), undefined, JSON.stringify(text))
  })
})

describe('processBirth', () => {
  it('tells a process from its successors, and is nothing for one that has ended, a zombie too', async () => {
    const child = spawn('sleep', ['30'], { stdio: 'ignore' })
    await once(child, 'spawn')
    const birth = processBirth(child.pid!)
    assert.ok(birth !== undefined)
    assert.equal(processBirth(child.pid!), birth)
    process.kill(child.pid!, 'SIGKILL')
    // Until the event loop turns nobody collects it: it is a zombie now.
    const deadline = Date.now() + 5000
    while (processBirth(child.pid!) !== undefined) assert.ok(Date.now() < deadline, 'it lives on')
    await once(child, 'exit')
    assert.equal(processBirth(child.pid!), undefined)
    assert.equal(processBirth(2 ** 22 + 1), undefined)
  })
})
