/** Helm, as a person runs it: every major that is there. */
import { ended, succeeded } from './kubectl.ts'

/** Helm 3 merges on its own side, Helm 4 applies on the server's: charts must suit both. */
const MAJORS = [3, 4] as const

export interface Helm {
  readonly major: number
  readonly version: string
  /** How it ended, whatever its exit code. */
  run(args: readonly string[]): ReturnType<typeof ended>
  /** Its output. @throws Error with what it said */
  must(args: readonly string[]): Promise<string>
}

const helmAt = async (program: string): Promise<Helm | undefined> => {
  const { code, stdout } = await ended(program, ['version', '--template', '{{.Version}}']).catch(() => ({
    code: 1,
    stdout: '',
  }))
  const major = /^v(\d+)\./.exec(stdout)?.[1]
  if (code !== 0 || major === undefined) return undefined
  return {
    major: Number(major),
    version: stdout.trim(),
    run: args => ended(program, args),
    must: args => succeeded(program, args),
  }
}

/**
 * The Helms of this machine, one a major: `helm` and `helm4` of PATH, and those that `SERVICE_TEST_HELMS` names, separated by
 * colons. Says which major is missing. @throws Error when there is none
 */
export const helms = async (): Promise<readonly Helm[]> => {
  const named = (process.env['SERVICE_TEST_HELMS'] ?? '').split(':').filter(program => program !== '')
  const found = new Map<number, Helm>()
  for (const program of ['helm', 'helm3', 'helm4', ...named]) {
    const helm = await helmAt(program)
    if (helm !== undefined && !found.has(helm.major)) found.set(helm.major, helm)
  }
  if (found.size === 0) throw new Error('This test needs helm on PATH, or its path in SERVICE_TEST_HELMS')
  for (const major of MAJORS)
    if (!found.has(major)) console.log(`      SKIPPED: Helm ${major} is not here; see tools/second-helm.sh`)
  return [...found.values()]
}
