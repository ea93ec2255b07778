/**
 * `node tools/lanes.ts FILES… [-- FILES…]… [--beside FILES… [-- FILES…]…]… [--last FILES…]`
 *
 * Each FILES (names with blanks between) is a mocha of its own. Those of a phase run beside each other, four at a time; `--` begins
 * the next phase, once all of this one ended; `--beside` a track of phases that runs beside the ones before; `--last` what runs when all of
 * them ended. What the first mocha
 * of each phase of the first track says is shown as it comes, what the others say when their phase has ended. The last line is the sum: `N passed, N failed[, N skipped]`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

const AT_ONCE = 4
/** Node may spin for ever while it clears up after the last test (seen in `Environment::CleanupHandles` of Node 24.21). */
const END_MS = 60_000
const SUM = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm
const LAST_WORD = /^\d+ passed, \d+ failed(?:, \d+ skipped)?\s*$/m

type Phase = string[]
const tracks: Phase[][] = [[[]]]
const last: Phase = []
let isLast = false
for (const argument of process.argv.slice(2)) {
  if (argument === '--last') isLast = true
  else if (isLast) last.push(argument)
  else if (argument === '--beside') tracks.push([[]])
  else if (argument === '--') tracks.at(-1)?.push([])
  else tracks.at(-1)?.at(-1)?.push(argument)
}

/** Not through a shell in the background, whose children would ignore Ctrl-C, and whoever they start too. */
const runMocha = async (files: string, isShown: boolean): Promise<string> => {
  const mocha = spawn('mocha', files.split(' ').filter(Boolean), { stdio: ['ignore', 'pipe', 'pipe'] })
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
  await once(mocha, 'close')
  clearTimeout(ending)
  return words
}

const runPhase = async (phase: Phase, isFirstTrack: boolean): Promise<string[]> => {
  const said: string[] = []
  const waiting = [...phase.entries()]
  const next = async (): Promise<void> => {
    for (let lane = waiting.shift(); lane !== undefined; lane = waiting.shift())
      said[lane[0]] = await runMocha(lane[1], isFirstTrack && lane[0] === 0)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  for (const words of said.slice(isFirstTrack ? 1 : 0)) process.stdout.write(words)
  return said
}

const runTrack = async (phases: readonly Phase[], isFirst: boolean): Promise<string[]> => {
  const said: string[] = []
  for (const phase of phases) said.push(...(await runPhase(phase, isFirst)))
  return said
}

let [passed, failed, skipped] = [0, 0, 0]
const said = (await Promise.all(tracks.map((phases, at) => runTrack(phases, at === 0)))).flat()
said.push(...(await runPhase(last, false)))
for (const words of said) {
  // One that ended without saying how has failed.
  const [, p, f, s] = [...words.matchAll(SUM)].at(-1) ?? [undefined, 0, 1]
  passed += Number(p)
  failed += Number(f)
  skipped += Number(s ?? 0)
}
console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed === 0 ? 0 : 1
