/** Says what takes long: nothing for steps under a second. */
export interface Progress {
  during<T>(what: string, step: () => Promise<T>): Promise<T>
}

const QUIET_MS = 1000
const REPEAT_MS = 10_000

/** Progress as lines; `what` reads like "Starting the control-plane database". */
export const lineProgress = (print: (line: string) => void): Progress => ({
  during: async (what, step) => {
    const begun = performance.now()
    const seconds = (): string => ((performance.now() - begun) / 1000).toFixed(1)
    const first = setTimeout(() => print(`${what} …`), QUIET_MS)
    const repeat = setInterval(() => print(`${what} … ${seconds()} s`), REPEAT_MS)
    try {
      const result = await step()
      if (performance.now() - begun >= QUIET_MS) print(`${what}: done in ${seconds()} s`)
      return result
    } finally {
      clearTimeout(first)
      clearInterval(repeat)
    }
  },
})

/** Says nothing. */
export const noProgress: Progress = { during: (_what, step) => step() }
