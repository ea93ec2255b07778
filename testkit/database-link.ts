/** A link to the test cluster that a test takes away: cut (as a stopped server) or silent (as a network that drops all). */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePorts } from './free-port.ts'

export interface DatabaseLink {
  /** A URL of the same database and role through the link. */
  url(database: string, role: string): string
  cut(): Promise<void>
  silence(): void
  restore(): Promise<void>
  stop(): Promise<void>
}

export const databaseLink = async (socketFolder: string): Promise<DatabaseLink> => {
  const sockets = new Set<Socket>()
  const port = await freePorts()
  let silent = false
  let server: Server | undefined
  const forward = (client: Socket): void => {
    const upstream = connect(join(socketFolder, '.s.PGSQL.5432'))
    const pairs: readonly (readonly [Socket, Socket])[] = [
      [client, upstream],
      [upstream, client],
    ]
    for (const [from, to] of pairs) {
      sockets.add(from)
      from.on('data', chunk => {
        if (!silent) to.write(chunk)
      })
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  }
  const listen = (): Promise<void> =>
    new Promise(resolve => {
      silent = false
      server = createServer(forward).listen(port, '127.0.0.1', resolve)
    })
  const cut = (): Promise<void> =>
    new Promise(resolve => {
      for (const socket of sockets) socket.destroy()
      if (server === undefined) resolve()
      else server.close(() => resolve())
      server = undefined
    })
  await listen()
  return {
    url: (database, role) => `postgres://${role}@127.0.0.1:${port}/${database}`,
    cut,
    silence: () => {
      silent = true
    },
    restore: async () => {
      await cut()
      await listen()
    },
    stop: cut,
  }
}
