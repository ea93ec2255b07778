import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePorts } from './free-port.ts'

/** A link to a Postgres server that can lose the answer to a COMMIT: the server commits, the client never hears it. */
export interface LossyLink {
  readonly port: number
  /** The next COMMIT on any connection is carried out, then its connection is cut. */
  loseNextCommit(): void
  /** From now on nothing passes, in either direction, and no connection is closed: a network that swallows everything. */
  fallSilent(): void
  /** From now on no farewell of a client arrives: the server, as one that is frozen, never closes a session. */
  swallowFarewells(): void
  /** How many were lost so far. */
  readonly lost: number
  stop(): void
}

// The simple query of the driver, and the server's word that it is done.
const COMMIT = Buffer.from('commit\0')
const DONE = Buffer.from('COMMIT\0')
// Terminate, the last message of a client.
const FAREWELL = Buffer.from([0x58, 0, 0, 0, 4])

export const lossyLink = async (socketFolder: string): Promise<LossyLink> => {
  const sockets = new Set<Socket>()
  let armed = false
  let silent = false
  let deaf = false
  let lost = 0
  const server = createServer(client => {
    const upstream = connect(join(socketFolder, '.s.PGSQL.5432'))
    let losing = false
    const cut = (): void => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', cut)
      socket.on('close', cut)
    }
    client.on('data', chunk => {
      if (silent || (deaf && chunk.equals(FAREWELL))) return
      if (armed && chunk.includes(COMMIT)) {
        armed = false
        losing = true
      }
      upstream.write(chunk)
    })
    upstream.on('data', chunk => {
      if (silent) return
      if (losing && chunk.includes(DONE)) {
        lost++
        cut()
      } else client.write(chunk)
    })
  })
  const port = await freePorts()
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return {
    port,
    loseNextCommit: () => (armed = true),
    fallSilent: () => (silent = true),
    swallowFarewells: () => (deaf = true),
    get lost() {
      return lost
    },
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
