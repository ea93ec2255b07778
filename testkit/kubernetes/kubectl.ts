/** kubectl, as a person runs it. */
import { spawn } from 'node:child_process'

/** How a command ended. */
export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const DEADLINE_MS = 300_000

/** How a command is run. */
export interface Running {
  readonly input?: string
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** Hears what it prints as it comes. */
  readonly hears?: (text: string) => void
}

/** Runs a program to its end; whatever its exit code is. */
export const ended = (program: string, args: readonly string[], options: Running = {}): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: 'pipe',
      signal: AbortSignal.timeout(DEADLINE_MS),
      env: { ...process.env, ...options.env },
      cwd: options.cwd,
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      options.hears?.(text)
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', reject)
    child.once('close', code => resolve({ code, stdout, stderr }))
    child.stdin.on('error', () => undefined) // it ended without reading: its exit code says why
    child.stdin.end(options.input ?? '')
  })

/** Runs a program that must succeed. @returns its standard output @throws Error with what it said */
export const succeeded = async (...call: Parameters<typeof ended>): Promise<string> => {
  const { code, stdout, stderr } = await ended(...call)
  if (code !== 0) throw new Error(`${call[0]} ${call[1].join(' ')} ended with ${code}: ${stderr || stdout}`)
  return stdout
}

/** kubectl on a cluster: `run` tells how it ended, `must` gives its output or throws. */
export const kubectlOn = (kubeconfig: string) => {
  const withCluster = (args: readonly string[]): string[] => ['--kubeconfig', kubeconfig, ...args]
  return {
    run: (args: readonly string[], input?: string) =>
      ended('kubectl', withCluster(args), input === undefined ? {} : { input }),
    must: (args: readonly string[], input?: string, hears?: Running['hears']) =>
      succeeded('kubectl', withCluster(args), { ...(input !== undefined && { input }), ...(hears && { hears }) }),
  }
}
