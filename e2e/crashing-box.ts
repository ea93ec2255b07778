/**
 * The program of the crash tests: a single box whose ports count their mutating calls, and that kills itself right after
 * the n-th, before anybody sees its answer. The parent says over IPC from when to count, and when to die.
 */
import { boxConfig } from '../box/config/config.ts'
import { openLocalPorts } from '../box/local-ports.ts'
import { noProgress } from '../box/progress.ts'
import { runBox } from '../box/run-box.ts'
import { runCommand } from '../box/run-command.ts'
import { type CallCounter, countingCredentials, countingHost, countingStore } from '../testkit/counting-ports.ts'

/** `count` starts counting from zero; with `dieAfter` the process dies after that call. `tell` asks for the calls so far. */
export type CrashOrder = { readonly count: true; readonly dieAfter?: number } | { readonly tell: true }

let calls: string[] = []
let dieAfter = Infinity

process.on('message', (order: CrashOrder) => {
  if ('tell' in order) {
    process.send?.(calls)
    return
  }
  calls = []
  dieAfter = order.dieAfter ?? Infinity
  process.send?.('counting')
})

const counter: CallCounter = {
  get calls() {
    return calls
  },
  count: async (name, call) => {
    const number = calls.push(name)
    try {
      return await call()
    } finally {
      if (number >= dieAfter) process.kill(process.pid, 'SIGKILL')
    }
  },
  read: call => call(),
}

await runCommand(async () => {
  await runBox({
    config: boxConfig(process.env),
    environment: process.env,
    progress: noProgress,
    logFile: true,
    showSecrets: true,
    print: line => console.log(line),
    onReady: () => undefined,
    stopHint: 'SIGTERM',
    openPorts: async options => {
      const ports = await openLocalPorts(options)
      return {
        ...ports,
        store: (client, time) => countingStore(ports.store(client, time), counter),
        credentials: countingCredentials(ports.credentials, counter),
        host: countingHost(ports.host, counter),
      }
    },
  })
})
