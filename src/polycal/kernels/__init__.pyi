from .kernels import CallableKernel as CallableKernel
from .kernels import Gaussian as Gaussian
from .kernels import Kernel as Kernel
from .kernels import Laplace as Laplace
from .kernels import Multinomial as Multinomial
