import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A way to a server on loopback that cuts every connection somewhere: in a request, before its answer, in it, between two. */
export interface CuttingProxy {
  readonly url: string
  /** Connections that were cut so far with bytes still to come. */
  readonly cut: number
  stop(): void
}

/** Starts one to a URL. `mostBytes`: each direction of a connection ends after fewer, a number drawn for each. */
export const startCuttingProxy = async (target: string, mostBytes: number): Promise<CuttingProxy> => {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let cut = 0
  const server = createServer(client => {
    const upstream = connect(Number(port), hostname)
    const end = (): void => {
      client.destroy()
      upstream.destroy()
    }
    const carry = (from: Socket, to: Socket): void => {
      let left = Math.floor(Math.random() * mostBytes)
      from.on('data', chunk => {
        to.write(chunk.subarray(0, left))
        left -= chunk.length
        if (left >= 0) return
        cut++
        // What was let through arrives before the end.
        to.end(end)
      })
    }
    carry(client, upstream)
    carry(upstream, client)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.once('error', end)
      socket.once('close', () => {
        sockets.delete(socket)
        end()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cut() {
      return cut
    },
    stop: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
