import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { testAccount, testFolder } from '../../testkit/server-files.ts'
import { skipBecause } from '../../testkit/skip-because.ts'
import { installedBuild, postgresVersion } from './binaries.ts'
import { dataHome } from './data-home.ts'
import { canReach } from './reach.ts'
import { reachableBinaries } from './reachable-binaries.ts'
import { childIdentity } from './server-process.ts'

/** A folder that only its owner, who runs the tests, can enter. */
const privateFolder = (): string => {
  const folder = join(testFolder(), 'private')
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

describe('folders and programs that the account of Postgres must reach', () => {
  before(function () {
    if (testAccount() !== undefined) return
    skipBecause(this, 'not root, so Postgres runs as ourselves and reaches what we reach')
  })

  it('are told by the account itself', async () => {
    const folder = privateFolder()
    assert.equal(await canReach(folder, testAccount()), false)
    assert.equal(await canReach(folder, undefined), true)
    chmodSync(folder, 0o711)
    assert.equal(await canReach(folder, testAccount()), true)
  })

  it('are used in place where the account gets there', async () => {
    const build = installedBuild()
    const inPlace = await canReach(build.root, testAccount())
    const binaries = await reachableBinaries(testAccount(), join(testFolder(), 'cache'))
    assert.equal(binaries.root === build.root, inPlace)
  })

  it('a build in a private folder is copied once, and the copy runs as the account', async function () {
    this.timeout(60_000)
    const hidden = privateFolder()
    const { root, version } = installedBuild()
    execFileSync('cp', ['-R', root, join(hidden, 'native')])
    const cache = join(testFolder(), 'cache')
    const [first, second] = await Promise.all(
      [1, 2].map(() => reachableBinaries(testAccount(), cache, { root: join(hidden, 'native'), version })),
    )
    assert.equal(first!.root, join(cache, `postgres-${version}`))
    assert.equal(second!.root, first!.root)
    assert.match(
      execFileSync(first!.postgres, ['--version'], { ...childIdentity(testAccount()), encoding: 'utf8' }),
      /17\./,
    )
    assert.match(await postgresVersion(first!), /^17\./)
    assert.equal(statSync(hidden).mode & 0o777, 0o700)
    const inode = statSync(first!.root).ino
    await reachableBinaries(testAccount(), cache, { root: join(hidden, 'native'), version })
    assert.equal(statSync(first!.root).ino, inode)
  })

  it('data goes elsewhere for a private folder, which says where, and stays there', async () => {
    const hidden = privateFolder()
    const elsewhere = join(testFolder(), 'lib')
    const home = join(hidden, 'checkout', '.svc')
    const place = await dataHome(home, testAccount(), elsewhere)
    assert.equal(place.startsWith(elsewhere), true)
    assert.equal(readFileSync(join(home, 'location'), 'utf8'), `${place}\n`)
    assert.equal(statSync(hidden).mode & 0o777, 0o700)
    chmodSync(hidden, 0o755)
    assert.equal(await dataHome(home, testAccount(), elsewhere), place)
  })

  it('data stays in a folder that the account can pass through to', async () => {
    const home = join(testFolder(), 'home')
    assert.equal(await dataHome(home, testAccount()), home)
    assert.equal(existsSync(join(home, 'location')), false)
  })
})
