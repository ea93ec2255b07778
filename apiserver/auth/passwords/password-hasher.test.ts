import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { Registry } from 'prom-client'
import { isCurrent } from '../../../lib/credentials/argon2-hash.ts'
import { silentLog } from '../../../runtime/log/log.ts'
import { isCode } from '../../../testkit/assert-code.ts'
import { lastOf, nextOf } from './hash-queue.ts'
import { PasswordHasher } from './password-hasher.ts'

/** Processes that this one began. */
const children = (): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /, '')
          .split(' ')
        const line = readFileSync(`/proc/${name}/cmdline`, 'utf8')
        return Number(fields[1]) === process.pid && line.includes('hash-worker') ? [Number(name)] : []
      } catch {
        return []
      }
    })

describe('who waits for a password to be checked', () => {
  const waiting = (rank: number, arrival: number) => ({ rank, arrival })

  it('is served by the lowest rank, then by arrival', () => {
    const jobs = [waiting(3, 1), waiting(0, 4), waiting(0, 2), waiting(1, 3)]
    const served: number[] = []
    while (jobs.length > 0) {
      const next = nextOf(jobs)!
      served.push(next.arrival)
      jobs.splice(jobs.indexOf(next), 1)
    }
    assert.deepEqual(served, [2, 4, 3, 1])
    assert.deepEqual([nextOf<{ rank: number; arrival: number }>([])], [undefined])
  })

  it('goes, where there is no room, by the highest rank, then by the latest arrival', () => {
    assert.deepEqual(lastOf([waiting(3, 1), waiting(0, 4), waiting(3, 2)]), waiting(3, 2))
    assert.deepEqual([lastOf<{ rank: number; arrival: number }>([])], [undefined])
  })
})

describe('the password hasher', () => {
  let hasher: PasswordHasher
  beforeEach(() => {
    hasher = new PasswordHasher(silentLog, new Registry())
  })
  afterEach(() => {
    hasher.stop()
  })

  it('makes hashes of today’s cost, and knows which password fits one', async () => {
    const hash = await hasher.hash('correct horse battery')
    assert.ok(isCurrent(hash))
    assert.equal(await hasher.fits('correct horse battery', hash, 0), true)
    assert.equal(await hasher.fits('correct horse batterz', hash, 0), false)
    assert.equal(await hasher.fits('correct horse battery', undefined, 0), false)
    assert.equal(await hasher.fits('x', '$argon2id$v=19$m=4194304,t=9,p=1$YWJjZGVmZ2hpamtsbW5vcA$x', 0), false)
  })

  it('works in a process of its own, at low priority, which is told nothing but the passwords', async () => {
    await hasher.hash('canary password')
    const [pid] = children()
    assert.ok(pid !== undefined)
    assert.equal(execFileSync('ps', ['-o', 'nice=', '-p', String(pid)], { encoding: 'utf8' }).trim(), '10')
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').replaceAll('\0', '\n')
    assert.ok(!/PASSWORD|SECRET|TOKEN|PGPASS|SERVICE_/.test(environment), environment)
    assert.ok(!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('canary'))
  })

  it('lets in whoever failed least past a crowd that failed often, and refuses the crowd in time', async () => {
    const hash = await hasher.hash('correct horse battery')
    const crowd = Array.from({ length: 200 }, () => hasher.fits('guess', undefined, 5).then(() => 'served', isBusy))
    const good = await hasher.fits('correct horse battery', hash, 0)
    assert.equal(good, true)
    const outcomes = await Promise.all(crowd)
    const refused = outcomes.filter(outcome => outcome === 'busy').length
    assert.ok(refused >= 200 - 32 - 64, `${refused} of 200 refused`)
  })

  it('begins its process anew when it dies, and tells those whose passwords were in it', async () => {
    const hash = await hasher.hash('correct horse battery')
    const [pid] = children()
    const under = Promise.all(
      Array.from({ length: 4 }, () => hasher.fits('guess', undefined, 0).then(() => 'served', isBusy)),
    )
    process.kill(pid!, 'SIGKILL')
    assert.ok((await under).every(outcome => outcome === 'busy' || outcome === 'served'))
    assert.equal(await hasher.fits('correct horse battery', hash, 0), true)
    assert.notDeepEqual(children(), [pid])
  })

  it('leaves no process behind, and refuses what comes after its stop', async () => {
    await hasher.hash('correct horse battery')
    hasher.stop()
    await assert.rejects(hasher.hash('correct horse battery'), isCode('login_busy'))
    while (children().length > 0) await new Promise(resolve => setTimeout(resolve, 10))
  })

  const isBusy = (error: unknown): string => {
    isCode('login_busy')(error)
    return 'busy'
  }
})
