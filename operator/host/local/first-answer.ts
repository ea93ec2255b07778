import { setTimeout as sleep } from 'node:timers/promises'
import { readPostmasterFile } from '../../../runtime/postgres/postmaster-pid.ts'
import type { ServerProcess, SocketAddress } from '../../../runtime/postgres/server-process.ts'
import { isSocketGone, knock, SILENT_LIMIT } from './health.ts'
import type { Times } from './surroundings.ts'

/**
 * answers: and is settled; silent: it says that it is ready and nobody answers, so it hangs; doorless: its socket was
 * removed; over: nobody waits for it any more.
 */
type FirstAnswer = 'answers' | 'silent' | 'doorless' | 'over'

/** Who waits. */
interface Waiting {
  readonly waits: () => boolean
  /** What has to be done before a server that answers counts; tried until it succeeds. */
  readonly settle: () => Promise<void>
  readonly onError: (error: unknown) => void
}

/** Waits for a server to answer, as long as it takes to recover. */
export const firstAnswer = async (
  server: ServerProcess,
  address: SocketAddress,
  times: Pick<Times, 'probeDeadline' | 'probeEvery'>,
  { waits, settle, onError }: Waiting,
): Promise<FirstAnswer> => {
  let saidAt: number | undefined
  for (let pause = 5; waits(); pause = Math.min(pause * 1.2, 500)) {
    const file = readPostmasterFile(server.dataFolder)
    if (file?.pid === server.pid && file.status === 'ready') {
      if ((await knock(address, times.probeDeadline)) === 'accepting') {
        try {
          await settle()
          return 'answers'
        } catch (error) {
          onError(error)
        }
      } else if (server.alive() && isSocketGone(address)) return 'doorless'
      saidAt ??= Date.now()
      if (Date.now() - saidAt > SILENT_LIMIT * times.probeEvery) return 'silent'
    }
    await sleep(pause, undefined, { ref: false })
  }
  return 'over'
}
