import { readFileSync } from 'node:fs'

/** Clock ticks a second in /proc: fixed at 100 by the kernel's interface to programs. */
const TICKS_PER_SECOND = 100

/** CPU time that a process has used so far, in seconds. Linux only. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The command may hold spaces and parentheses: fields count from behind its last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Resident memory of a process in MiB. Linux only. */
export const residentMib = (pid: number): number => {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  if (line?.[1] === undefined) throw new Error(`Cannot read the memory of process ${pid}`)
  return Number(line[1]) / 1024
}
