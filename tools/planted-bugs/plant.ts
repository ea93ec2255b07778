/** Plants bugs in a copy of the tree, one at a time, and sees which test finds each. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { newTemporaryFolder } from '../../testkit/test-folder.ts'
import type { Bug } from './bugs.ts'

const ROOT = join(import.meta.dirname, '../..')
const NOT_COPIED = new Set(['node_modules', '.git', '.svc'])
/** A run of all of the tests takes a third of this. */
const DEADLINE_MS = 10 * 60_000
/** Generous: a test that is late beside others has found nothing. */
const TEST_TIMEOUT_MS = 60_000

const files = (...names: readonly string[]): readonly string[] => names.map(name => `apiserver/test/${name}.test.ts`)

interface Stage {
  readonly tests: readonly string[]
  readonly full: '0' | '1'
}

/** The matrix with all of its cells, then what stands beside it; the first test that fails ends a run. */
const STAGES: readonly Stage[] = [
  { tests: files('authorization'), full: '1' },
  // What a second guard behind the table refuses as well shows in the table’s own test alone.
  { tests: ['apiserver/auth/policy.test.ts', 'lib/model/scope.test.ts'], full: '0' },
  {
    tests: files(
      'account-tokens',
      'account-token.model',
      'agent-tokens',
      'api-keys',
      'organizations',
      'projects',
      'invitations',
      'audit-and-operations',
      'connection-and-usage',
      'environments',
      'device-flow',
      'login',
      'authorization-by-oidc',
      'oidc',
      'sso',
      'sso-hostile',
      'sso-accounts',
      'claimed-accounts',
    ),
    full: '0',
  },
]

/** What became of one. */
export interface Hunt {
  readonly bug: Bug
  /** The title of the test that failed; undefined: none did. */
  readonly caughtBy: string | undefined
  readonly seconds: number
}

/** The file with the bug in it. @throws Error when `was` does not stand in it exactly once */
export const withBug = ({ what, file, was, now }: Bug, text: string): string => {
  const parts = text.split(was)
  if (parts.length !== 2)
    throw new Error(`"${what}" no longer fits ${file}: what it changes stands there ${parts.length - 1} times`)
  return parts.join(now)
}

/** A file of the product, by its path from the root. */
export const readProduct = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const copyTree = (): string => {
  const folder = newTemporaryFolder()
  for (const name of readdirSync(ROOT))
    if (!NOT_COPIED.has(name)) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

interface Failure {
  readonly fullTitle: string
  /** undefined: a hook of the whole run failed. */
  readonly file?: string
  readonly err: { readonly message?: string }
}

/** Runs a stage's tests in a tree until one fails, and answers that one. @throws Error when they could not run at all, or not in time */
const runTests = async (tree: string, { tests, full }: Stage): Promise<Failure | undefined> => {
  const output = join(tree, 'report.json')
  rmSync(output, { force: true })
  const options = [
    '--bail',
    '--timeout',
    String(TEST_TIMEOUT_MS),
    '--reporter',
    'json',
    '--reporter-option',
    `output=${output}`,
  ]
  const mocha = spawn('mocha', [...options, ...tests], {
    cwd: tree,
    env: { ...process.env, FULL: full },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: DEADLINE_MS,
  })
  let words = ''
  mocha.stderr.setEncoding('utf8').on('data', (piece: string) => (words += piece))
  await once(mocha, 'close')
  let report: { readonly failures: readonly Failure[] }
  try {
    report = JSON.parse(readFileSync(output, 'utf8')) as typeof report
  } catch (cause) {
    throw new Error(`The tests did not run: ${words.slice(-2000)}`, { cause })
  }
  return report.failures[0]
}

/**
 * That a file of tests finds nothing in a copy without any bug: asked of a file that found one, once. With its small sizes, for with all of
 * them make verify runs it on the tree itself.
 */
type Soundness = (file: string) => Promise<void>
const soundness = (): Soundness => {
  const known = new Map<string, Promise<void>>()
  const prove = async (file: string): Promise<void> => {
    const tree = copyTree()
    try {
      const broken = await runTests(tree, { tests: [file], full: '0' })
      if (broken !== undefined)
        throw new Error(`Without any bug this fails: ${broken.fullTitle}: ${broken.err.message ?? ''}`)
    } finally {
      rmSync(tree, { recursive: true, force: true })
    }
  }
  return file => {
    const proof = known.get(file) ?? prove(file)
    known.set(file, proof)
    return proof
  }
}

const modelStages = new Map<string, Stage>()
const stageOfModel = (model: string): Stage => {
  const stage = modelStages.get(model) ?? { tests: files(`${model}.model`), full: '1' }
  modelStages.set(model, stage)
  return stage
}

const findBug = async (tree: string, { model }: Bug, isSound: Soundness): Promise<Failure | undefined> => {
  for (const stage of model === undefined ? STAGES : [stageOfModel(model)]) {
    const failure = await runTests(tree, stage)
    if (failure === undefined) continue
    if (failure.file === undefined) throw new Error(`This fails outside of any file: ${failure.fullTitle}`)
    await isSound(relative(tree, failure.file))
    return failure
  }
  return undefined
}

const hunt = async (tree: string, bug: Bug, isSound: Soundness): Promise<Hunt> => {
  const began = performance.now()
  const path = join(tree, bug.file)
  const good = readFileSync(path, 'utf8')
  writeFileSync(path, withBug(bug, good))
  try {
    const failure = await findBug(tree, bug, isSound)
    return { bug, caughtBy: failure?.fullTitle, seconds: (performance.now() - began) / 1000 }
  } finally {
    writeFileSync(path, good)
  }
}

/**
 * Plants each bug in turn, `atOnce` of them beside each other, and tells of each as soon as it is known.
 * @throws Error when the tests fail without any bug
 */
export const huntAll = async (
  bugs: readonly Bug[],
  atOnce: number,
  tell: (hunt: Hunt) => void = () => undefined,
): Promise<readonly Hunt[]> => {
  const trees = Array.from({ length: atOnce }, copyTree)
  try {
    const isSound = soundness()
    const waiting = [...bugs]
    const hunts: Hunt[] = []
    await Promise.all(
      trees.map(async tree => {
        for (let bug = waiting.shift(); bug !== undefined; bug = waiting.shift()) {
          const found = await hunt(tree, bug, isSound)
          hunts.push(found)
          tell(found)
        }
      }),
    )
    return hunts
  } finally {
    for (const tree of trees) rmSync(tree, { recursive: true, force: true })
  }
}
