/** Where this machine itself connects to what listens at an address: every address includes loopback. */
export const ownAddress = (listen: string): string =>
  listen === '0.0.0.0' ? '127.0.0.1' : listen === '::' ? '::1' : listen
