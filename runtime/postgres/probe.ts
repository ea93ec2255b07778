import { connect } from 'node:net'
import type { SocketAddress } from './server-process.ts'

/**
 * accepting: a backend asked who we are. busy: it answers but takes no more sessions. starting: not yet, or no more
 * (starting up, recovering, shutting down). silent: no answer in time, or nobody there.
 */
export type ProbeAnswer = 'accepting' | 'busy' | 'starting' | 'silent'

const PROTOCOL_3 = 196_608

/**
 * Knocks without signing in: sends a start-up packet for a role that has to show a password and looks at the first byte of the
 * answer. Costs the server a fork and no catalogue reads (about a tenth of a sign-in), and it logs nothing. pg_hba.conf must
 * let the role in by password through the socket.
 */
export const probeServer = (
  address: SocketAddress,
  login: { readonly role: string; readonly database: string },
  deadlineMs: number,
): Promise<ProbeAnswer> =>
  new Promise(resolve => {
    const socket = connect({ path: `${address.socketFolder}/.s.PGSQL.${address.port}` })
    let answer = Buffer.alloc(0)
    const settle = (result: ProbeAnswer): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    const timer = setTimeout(() => settle('silent'), deadlineMs)
    socket.on('error', () => settle('silent'))
    socket.on('end', () => settle('silent'))
    socket.on('connect', () => socket.write(startupPacket(login.role, login.database)))
    socket.on('data', chunk => {
      answer = Buffer.concat([answer, chunk])
      const judged = judge(answer)
      if (judged !== undefined) settle(judged)
    })
  })

const startupPacket = (role: string, database: string): Buffer => {
  const body = Buffer.from(`user\0${role}\0database\0${database}\0\0`)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(body.length + 8, 0)
  head.writeUInt32BE(PROTOCOL_3, 4)
  return Buffer.concat([head, body])
}

/** What the first message says; undefined until it is whole. */
const judge = (answer: Buffer): ProbeAnswer | undefined => {
  if (answer.length < 5) return undefined
  if (answer[0] !== 'E'.charCodeAt(0)) return 'accepting'
  if (answer.length < answer.readUInt32BE(1) + 1) return undefined
  const code = /\0C([0-9A-Z]{5})\0/.exec(answer.toString('latin1', 4))?.[1]
  if (code === '57P03') return 'starting'
  return code === '53300' ? 'busy' : 'accepting'
}
