import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { judgeLastWords, lastWords } from '../../../runtime/postgres/last-words.ts'
import { testFolder } from '../../../testkit/server-files.ts'
import { ConditionError } from '../host.ts'
import { conditionError, failureOf } from './failure-reason.ts'

const LINE = '2026-11-27 10:00:00.123 UTC [4711] '

const CASES: readonly (readonly [said: string, reason: string | undefined, message: RegExp])[] = [
  ['FATAL:  could not write lock file "postmaster.pid": No space left on device', 'DiskFull', /full/],
  ['PANIC:  could not write to file "pg_wal/xlogtemp.12": No space left on device', 'DiskFull', /full/],
  ['FATAL:  could not extend file "base/5/1": Disk quota exceeded', 'DiskFull', /full/],
  [
    `LOG:  could not bind IPv4 address "127.0.0.1": Address already in use\n${LINE}FATAL:  could not create any TCP/IP sockets`,
    'PortTaken',
    /Port 20123/,
  ],
  [
    `LOG:  could not bind IPv4 address "10.99.99.99": Cannot assign requested address\n${LINE}FATAL:  could not create any TCP/IP sockets`,
    'AddressUnavailable',
    /not one of this machine/,
  ],
  [
    `FATAL:  data directory "/var/lib/svc/ab12/environments/x/data" has invalid permissions`,
    'StartFailed',
    /^Postgres does not start: data directory "data" has invalid permissions$/,
  ],
  [
    `FATAL:  lock file "postmaster.pid" already exists\n${LINE}HINT:  Is another postmaster (PID 99) running in data directory "/srv/x/data"?`,
    'StartFailed',
    /already exists$/,
  ],
  [`PANIC:  could not locate a valid checkpoint record at 0/1`, 'StartFailed', /checkpoint record/],
  [`FATAL:  first\n${LINE}FATAL:  second`, 'StartFailed', /second$/],
  ['LOG:  database system was interrupted; last known up at …', undefined, /^$/],
]

describe('the reason of a failed start', () => {
  for (const [said, reason, message] of CASES)
    it(`is ${reason ?? 'unknown'} for: ${(said.split('\n')[0] ?? '').slice(0, 60)}`, () => {
      const judged = judgeLastWords(`${LINE}${said}\n`, 20_123)
      assert.equal(judged?.reason, reason)
      assert.match(judged?.message ?? '', message)
    })

  it('fits a condition: no path, no process id, no control character, not longer than 400', () => {
    const { message } = judgeLastWords(`FATAL:  /srv/a/b/c.conf process 42 \u0007 ${'x'.repeat(5000)}`, 1)!
    assert.doesNotMatch(message, /\/srv|42|\u0007/)
    assert.ok(message.length < 400)
  })

  it('is told from errors of the system', () => {
    const error = (code: string, message = code): Error => Object.assign(new Error(message), { code })
    assert.equal(failureOf(error('ENOSPC')).reason, 'DiskFull')
    assert.equal(failureOf(new Error('cp: error writing x: No space left on device')).reason, 'DiskFull')
    assert.equal(failureOf(error('EROFS')).reason, 'StorageUnavailable')
    assert.equal(failureOf(new ConditionError('DatabaseReachable', 'PortTaken', 'taken')).reason, 'PortTaken')
    assert.equal(failureOf(new Error('/home/x/y went wrong')).message.includes('/home'), false)
    assert.equal(conditionError({ reason: 'DiskFull', message: '' }).condition, 'StorageReady')
    assert.equal(conditionError({ reason: 'StartFailed', message: '' }).condition, 'DatabaseReachable')
  })

  it('is looked for in what was said since the launch, in both logs', async () => {
    const folder = testFolder()
    const log = join(folder, 'log')
    mkdirSync(log)
    writeFileSync(join(folder, 'start.log'), 'FATAL:  from the start log\n')
    const line = (time: string, text: string): string => `2026-11-27 ${time} UTC [1] ${text}\n`
    const file = join(log, 'postgres-20261127-100000.log')
    writeFileSync(file, line('10:00:00.000', 'PANIC:  of another life') + line('11:00:00.500', 'FATAL:  of this one'))
    const words = await lastWords(join(folder, 'start.log'), log, new Date('2026-11-27T11:00:00.000Z'))
    assert.match(words, /from the start log[\s\S]*of this one/)
    assert.doesNotMatch(words, /another life/)
    assert.equal((await lastWords(join(folder, 'none'), join(folder, 'none'), new Date())).trim(), '')
  })
})
