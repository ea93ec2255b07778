import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runAs } from '../runtime/postgres/run-as.ts'
import { skipBecause } from '../testkit/skip-because.ts'
import { BoxError } from './box-error.ts'
import { openHome } from './home-folder.ts'

describe('the home folder', () => {
  const account = runAs(undefined)
  let parent: string
  let home: string
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), 'svc-home-'))
    if (account !== undefined) rmSync(parent, { recursive: true })
    mkdirSync(parent, { recursive: true, mode: 0o755 })
    home = join(parent, 'svc')
  })
  afterEach(() => rmSync(parent, { recursive: true }))

  const mode = (path: string): number => statSync(path).mode & 0o777
  const refused = async (pattern: RegExp): Promise<void> => {
    const before = readdirSync(home).sort()
    await assert.rejects(openHome(home, account), (error: unknown) => {
      assert.ok(error instanceof BoxError, String(error))
      assert.match(error.message, pattern)
      assert.ok(!error.message.includes('\n'))
      return true
    })
    assert.deepEqual(readdirSync(home).sort(), before)
  }

  it('is made at the first start and found again', async () => {
    const first = await openHome(home, account)
    assert.equal(mode(first.secrets), 0o700)
    assert.equal(first.dataRoot, first.root)
    first.release()
    const second = await openHome(home, account)
    assert.equal(second.root, first.root)
    second.release()
  })

  it('is refused to a second start', async () => {
    const first = await openHome(home, account)
    await refused(new RegExp(`Already running on .*pid ${process.pid}.*make down`))
    first.release()
    ;(await openHome(home, account)).release()
  })

  it('is refused when a newer version wrote it', async () => {
    mkdirSync(home)
    writeFileSync(join(home, 'layout.json'), '{"layout":2,"postgresMajor":17}')
    await refused(/newer version/)
  })

  it('is refused when it holds data of another Postgres', async () => {
    mkdirSync(home)
    writeFileSync(join(home, 'layout.json'), '{"layout":1,"postgresMajor":18}')
    await refused(/Postgres 18/)
  })

  it('is refused when the control-plane database is of another Postgres, whatever the layout says', async () => {
    ;(await openHome(home, account)).release()
    mkdirSync(join(home, 'control-plane', 'data'), { recursive: true })
    writeFileSync(join(home, 'control-plane', 'data', 'PG_VERSION'), '16\n')
    await refused(/Postgres 16/)
  })

  it('is refused when it is somebody else’s folder', async () => {
    mkdirSync(home)
    writeFileSync(join(home, 'thesis.doc'), 'years of work')
    await refused(/not empty \("thesis\.doc"\)/)
    assert.deepEqual(readdirSync(home), ['thesis.doc'])
  })

  it('is refused when its layout cannot be read', async () => {
    mkdirSync(home)
    writeFileSync(join(home, 'layout.json'), '{')
    await refused(/damaged/)
  })

  it('sends data elsewhere when Postgres’ account cannot reach it, and widens no mode', async function () {
    if (account === undefined) return skipBecause(this, 'not root, so Postgres runs as ourselves')
    const closed = join(parent, 'closed')
    mkdirSync(closed, { mode: 0o700 })
    const opened = await openHome(join(closed, 'svc'), account)
    try {
      assert.match(opened.dataRoot, /^\/var\/lib\/svc\/[0-9a-f]{12}$/)
      assert.equal(readFileSync(join(opened.root, 'location'), 'utf8'), `${opened.dataRoot}\n`)
      assert.equal(mode(closed), 0o700)
      assert.ok(opened.secrets.startsWith(opened.root))
      opened.release()
      const again = await openHome(join(closed, 'svc'), account)
      assert.equal(again.dataRoot, opened.dataRoot)
      again.release()
    } finally {
      rmSync(opened.dataRoot, { recursive: true, force: true })
    }
    await assert.rejects(openHome(join(closed, 'svc'), account), /location on file is not there/)
    assert.ok(!existsSync(opened.dataRoot))
  })
})
