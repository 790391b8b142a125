// Asks the libnvidia-ml.so.1 of this process for the energy of a device that is not there, as the
// library would, and prints why it is not known.
#include <injector/process/energy_meter.h>

#include <cstdio>

int main() {
  flopinj::EnergyMeter meter([] { return uint64_t{1}; });
  meter.open(flopinj::DeviceId{1}, {}, std::chrono::seconds(60));
  for (const flopinj::DeviceEnergy& device : meter.read()) std::puts(device.unavailable.c_str());
}
