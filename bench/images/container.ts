/** Runs a program in an image with what built it, on the network of this machine. */
import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { succeeded } from '../../testkit/kubernetes/kubectl.ts'

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Folders of this machine by their paths in the container. */
  readonly mounts?: Readonly<Record<string, string>>
  /** Instead of what the image starts. */
  readonly command: readonly string[]
  /** Instead of the image's own account. */
  readonly user?: string
}

export interface Image {
  /** Begins a program, as the image's account. */
  start(options: RunOptions): ChildProcessWithoutNullStreams
  /** Runs one to its end. @returns what it printed @throws Error with what it said */
  run(options: RunOptions): Promise<string>
  remove(): Promise<void>
}

/** What `tools/images.sh` builds with. */
const builder = (): string => {
  const works = (program: string, ...args: string[]): boolean =>
    spawnSync(program, args, { stdio: 'ignore' }).status === 0
  if (works('docker', 'info')) return 'docker'
  return works('podman', '--version') ? 'podman' : 'buildah'
}

/** Makes an image ready to run. */
export const openImage = async (name: string): Promise<Image> => {
  const program = builder()
  const container =
    program === 'buildah' ? (await succeeded(program, ['from', '--pull-never', name])).trim() : undefined
  const argsOf = ({ env = {}, mounts = {}, command, user }: RunOptions): string[] => {
    const given = [
      ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
      ...Object.entries(mounts).flatMap(([inside, outside]) => ['--volume', `${outside}:${inside}`]),
      ...(user === undefined ? [] : ['--user', user]),
    ]
    if (container !== undefined) return ['run', '--isolation', 'chroot', ...given, container, '--', ...command]
    const [entry = '', ...rest] = command
    return ['run', '--rm', '--init=false', '--network', 'host', ...given, '--entrypoint', entry, name, ...rest]
  }
  return {
    start: options => spawn(program, argsOf(options), { stdio: 'pipe' }),
    run: options => succeeded(program, argsOf(options)),
    remove: async () => {
      if (container !== undefined) await succeeded(program, ['rm', container])
    },
  }
}

/** Ends a program that was begun, and waits until it has. */
export const end = async (child: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}
