/**
 * `node tools/lanes.ts FILES… [-- FILES…]… [-- --first PROGRAM FILES…]… [--beside [--with NAME=VALUE]… FILES… [-- FILES…]…]… [--last FILES…]`
 *
 * Each FILES (names with blanks between) is a mocha of its own. Those of a phase run beside each other, four at a time; `--` begins
 * the next phase, once all of this one ended. `--first` names a program that the phase and all after it in its track need to have
 * run: where it fails they do not run, and count as one that failed. `--with` is a variable of the phase's environment. `--beside`
 * begins a track of phases that runs beside the ones before, `--last` what runs when all of them ended. What the first mocha of each
 * phase of the first track says is shown as it comes, what the others say when their phase has ended. The last line is the sum:
 * `N passed, N failed[, N skipped]`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

const AT_ONCE = 4
/** Node may spin for ever while it clears up after the last test (seen in `Environment::CleanupHandles` of Node 24.21). */
const END_MS = 15_000
const SUM = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm
const LAST_WORD = /^\d+ passed, \d+ failed(?:, \d+ skipped)?\s*$/m

interface Phase {
  /** A program without arguments. */
  first?: string | undefined
  readonly environment: Record<string, string>
  readonly lanes: string[]
}
const emptyPhase = (): Phase => ({ environment: {}, lanes: [] })
const last = emptyPhase()
let phase = emptyPhase()
const tracks: Phase[][] = [[phase]]
const told = process.argv.slice(2)
for (let word = told.shift(); word !== undefined; word = told.shift()) {
  if (word === '--last') phase = last
  else if (word === '--beside') tracks.push([(phase = emptyPhase())])
  else if (word === '--') tracks.at(-1)?.push((phase = emptyPhase()))
  else if (word === '--first') phase.first = told.shift()
  else if (word === '--with') {
    const [name = '', ...value] = told.shift()?.split('=') ?? []
    phase.environment[name] = value.join('=')
  } else phase.lanes.push(word)
}

/** Not through a shell in the background, whose children would ignore Ctrl-C, and whoever they start too. */
const runMocha = async (files: string, environment: Phase['environment'], isShown: boolean): Promise<string> => {
  const env = { ...process.env, ...environment }
  const mocha = spawn('mocha', files.split(' ').filter(Boolean), { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let words = ''
  let ending: NodeJS.Timeout | undefined
  const endByForce = (): void => {
    process.stderr.write(`A mocha told its sum and did not end in ${END_MS / 1000} s: ended by force\n`)
    // The one that spins is its child.
    spawnSync('pkill', ['-KILL', '-P', String(mocha.pid)])
    mocha.kill('SIGKILL')
  }
  for (const [stream, shown] of [
    [mocha.stdout, process.stdout],
    [mocha.stderr, process.stderr],
  ] as const)
    stream.setEncoding('utf8').on('data', (piece: string) => {
      words += piece
      clearTimeout(ending)
      if (LAST_WORD.test(words.slice(-200))) ending = setTimeout(endByForce, END_MS)
      if (isShown) shown.write(piece)
    })
  const [code, signal] = (await once(mocha, 'close')) as [number | null, string | null]
  clearTimeout(ending)
  return words.search(SUM) >= 0 ? words : `${words}\nmocha ended by ${signal ?? code} without a sum: ${files}`
}

const runPhase = async ({ environment, lanes }: Phase, isFirstTrack: boolean): Promise<string[]> => {
  const said: string[] = []
  const waiting = [...lanes.entries()]
  const next = async (): Promise<void> => {
    for (let lane = waiting.shift(); lane !== undefined; lane = waiting.shift())
      said[lane[0]] = await runMocha(lane[1], environment, isFirstTrack && lane[0] === 0)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  for (const words of said.slice(isFirstTrack ? 1 : 0)) process.stdout.write(words)
  return said
}

const succeeds = async (program: string): Promise<boolean> => {
  const [code] = (await once(spawn(program, { stdio: ['ignore', 'inherit', 'inherit'] }), 'close')) as [number | null]
  return code === 0
}

const runTrack = async (phases: readonly Phase[], isFirst: boolean): Promise<string[]> => {
  const said: string[] = []
  for (const phase of phases) {
    if (phase.first !== undefined && !(await succeeds(phase.first)))
      return [...said, `${phase.first} failed: what needs it did not run`]
    said.push(...(await runPhase(phase, isFirst)))
  }
  return said
}

let [passed, failed, skipped] = [0, 0, 0]
const said = (await Promise.all(tracks.map((phases, at) => runTrack(phases, at === 0)))).flat()
said.push(...(await runPhase(last, false)))
for (const words of said) {
  const sum = [...words.matchAll(SUM)].at(-1)
  // One that ended without saying how has failed, which is told as mocha tells it.
  if (sum === undefined) console.log(`\n  1 failing\n\n  ${words.trimEnd().split('\n').at(-1)}`)
  const [, p, f, s] = sum ?? [undefined, 0, 1]
  passed += Number(p)
  failed += Number(f)
  skipped += Number(s ?? 0)
}
console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed === 0 ? 0 : 1
