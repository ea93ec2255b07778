/** Has everything here and in processes that are started from here look at the cluster that is for benches alone, where one is named. */
export const useBenchCluster = (): void => {
  const own = process.env['SERVICE_BENCH_API_KUBECONFIG']
  if (own !== undefined) process.env['SERVICE_TEST_API_KUBECONFIG'] = own
}
