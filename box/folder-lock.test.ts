import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isLocked, lockHolder, tryLockFolder } from './folder-lock.ts'

describe('the folder lock', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-lock-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  /** A process that holds the lock until it is killed. */
  const holder = async (): Promise<ReturnType<typeof spawn>> => {
    const script = `import { tryLockFolder } from ${JSON.stringify(import.meta.resolve('./folder-lock.ts'))}
      if (tryLockFolder(${JSON.stringify(folder)}) === undefined) process.exit(3)
      globalThis.gc(); console.log('held'); setInterval(() => undefined, 1000)`
    const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    return child
  }

  it('is given to one process, which it names to the others', async () => {
    const child = await holder()
    try {
      assert.equal(tryLockFolder(folder), undefined)
      assert.equal(isLocked(folder), true)
      assert.equal(lockHolder(folder), child.pid)
    } finally {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  })

  it('is free again when its holder was killed', async () => {
    const child = await holder()
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(isLocked(folder), false)
    assert.equal(lockHolder(folder), undefined)
    const lock = tryLockFolder(folder)
    assert.ok(lock)
    assert.equal(lockHolder(folder), process.pid)
    lock.release()
    assert.equal(isLocked(folder), false)
  })

  it('does not take a living process whose pid a dead holder had for the holder', () => {
    writeFileSync(join(folder, 'lock'), '')
    writeFileSync(join(folder, 'holder.pid'), `${process.ppid} 1\n`)
    assert.equal(lockHolder(folder), undefined)
    const lock = tryLockFolder(folder)
    assert.ok(lock)
    // The moment between taking the lock and writing the file.
    writeFileSync(join(folder, 'holder.pid'), `${process.ppid} 1\n`)
    assert.equal(lockHolder(folder), undefined)
    lock.release()
  })

  it('is nobody else’s to take: only its owner can open the file, also one that was made with a wider mode', () => {
    writeFileSync(join(folder, 'lock'), '', { mode: 0o644 })
    for (const round of [1, 2]) {
      const lock = tryLockFolder(folder)
      assert.ok(lock, `round ${round}`)
      assert.equal(statSync(join(folder, 'lock')).mode & 0o777, 0o600)
      lock.release()
    }
  })

  it('is given once when many ask in the same moment', async () => {
    const children = Array.from({ length: 4 }, () =>
      spawn(
        process.execPath,
        [
          '--input-type=module',
          '-e',
          `import { tryLockFolder } from ${JSON.stringify(import.meta.resolve('./folder-lock.ts'))}
           process.stdout.write(tryLockFolder(${JSON.stringify(folder)}) === undefined ? 'refused' : 'held')
           setInterval(() => undefined, 1000)`,
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      ),
    )
    const said = await Promise.all(children.map(async child => String((await once(child.stdout, 'data'))[0])))
    for (const child of children) child.kill('SIGKILL')
    assert.deepEqual(said.sort(), ['held', 'refused', 'refused', 'refused'])
  })
})
